# `make bench` measures this machine, `make test` checks the project; each does its own set-up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help install bench bench-full bench-gpu bench-gpu-full device wheelhouse device-bundle distributions dashboard speed tune gate-proof test test-all test-together test-alone proofs fuzz profiled docs links lint smoke overhead clean

help:
	@echo "make install     the kernels and all libraries into .venv, as convbench try and tests need them"
	@echo "make bench       install, measure a short selection for HEAD, publish, print the fastest (11 minutes)"
	@echo "make bench-full  the same for every cell; prints its estimate first"
	@echo "make bench-gpu   a short selection for a machine with a CUDA device, with the libraries installed there; needs no network"
	@echo "make bench-gpu-full  the same for every cell of the GPU's implementations, of all operations"
	@echo "make device      check for the CUDA device that make bench-gpu needs"
	@echo "make wheelhouse  fetch the packages that such a machine lacks, for its Python (GPU_PYTHON=3.12), to be copied there with the checkout"
	@echo "make device-bundle  pack the committed checkout, without its history, and that folder into build/device-bundle.tar, to be copied there"
	@echo "make distributions  build the wheel and the sdists that a release publishes, into dist/, and check them"
	@echo "make dashboard   publish the stored results and serve them; asv's pages then need no network, since npm fetches their libraries once"
	@echo "make speed       install, time our kernels in turn with torch, OpenCV and a copy, check the goals, write docs/speed.md"
	@echo "make tune        install, time which implementation is fastest on which problem, for impls.conv2d on this machine; resumes where it stopped"
	@echo "make gate-proof  measure the accuracy and cost of convbench gate on this machine: an hour; resumes where it stopped"
	@echo "make test        install and run the tests: six minutes"
	@echo "make test-all  run these and the slow tests, as .ci/run does: 15 minutes"
	@echo "make test-together  those of them that run several files at a time"
	@echo "make test-alone  those that have the machine for themselves"
	@echo "make proofs   run the proofs, which take minutes each"
	@echo "make fuzz        test damaged files and odd convolutions for MINUTES=10 from SEED=0 on, kernels under sanitizers"
	@echo "make profiled    compile the kernels for profilers, into an environment of its own: docs/profile.md says how to use it"
	@echo "make docs        the documentation as a site, in build/site, every link checked"
	@echo "make links       ask every page outside that the documentation names whether it is there"
	@echo "make lint        ruff and mypy"
	@echo "make smoke       every kind of class with one implementation, built, checked and published"
	@echo "make overhead    what a cell costs beside the calls it times"
	@echo "make clean       remove everything that was installed or built here; results stay"

# The requirements of an extra of pyproject.toml, a line each.
define EXTRA
import sys, tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")
endef
export EXTRA

# What measuring needs: the tool and asv. What is measured is built into an environment of asv's own.
$(VENV)/tool: pyproject.toml convbench/pyproject.toml
	@command -v $(firstword $(CC)) >/dev/null || { echo "no C compiler: the Cython kernels need $(CC); install one (Debian: apt-get install gcc) or name it with CC="; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; name it with PYTHON="; exit 1; }
	@echo "installing the tool into $(VENV) (under a minute)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -c "$$EXTRA" bench > $(VENV)/bench.txt
	PYTHONWARNINGS=ignore::UserWarning $(BIN)/python -m pip install --quiet --requirement $(VENV)/bench.txt --editable './convbench[page]'
	@touch $@

# Installed editable: a changed file is used at once, and a changed Cython file is compiled when it is next imported, by the
# compiler named here in full, so that the environment need not be activated for that.
$(VENV)/installed: $(VENV)/tool meson.build meson.options
	@echo "installing what is measured into $(VENV) (three minutes: torch, and compiling)"
	$(BIN)/python -m pip install --quiet "meson-python>=0.18" "meson>=1.4" ninja "Cython==3.3.1" "numpy==2.4.6"
	PYTHONWARNINGS=ignore::UserWarning $(BIN)/python -m pip install --quiet --editable './convbench[cluster,export,page,profile]'
	PATH="$(CURDIR)/$(BIN):$$PATH" CYTHON="$(CURDIR)/$(BIN)/cython" PYTHONWARNINGS=ignore::UserWarning \
		$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[bench,libraries,test]'
	@touch $@

install: $(VENV)/installed

bench: $(VENV)/tool
	@status=0; $(BIN)/convbench run --quick || status=$$?; \
	$(BIN)/asv publish --no-pull && $(BIN)/convbench table --commit HEAD || status=$$?; \
	echo "dashboard: html/index.html; see it with: $(BIN)/convbench dashboard"; exit $$status

bench-full: $(VENV)/tool
	@status=0; $(BIN)/convbench run || status=$$?; \
	$(BIN)/asv publish --no-pull && $(BIN)/convbench table --commit HEAD || status=$$?; exit $$status

# What a machine with a GPU and no network needs beside torch, CuPy, Triton, Numba and NumPy; under 64 MiB.
GPU_PYTHON ?= 3.12
GPU_VENV := .venv-gpu
GPU_BIN := $(GPU_VENV)/bin

# Meson is a program beside PYTHON if that belongs to a virtual environment that is not activated.
GPU_PATH = PATH="$(CURDIR)/$(GPU_BIN):$$(dirname "$$(command -v $(PYTHON))"):$$PATH"

# Where PYTHON is of a virtual environment itself, the new one would see what lies below both and not what is installed there.
define BELOW
import sys
for folder in sys.path:
    if folder.endswith("-packages"):
        print(f"import site; site.addsitedir({folder!r})")
endef
export BELOW

define DEVICE
import sys
try:
    import cupy, torch
    seen = {"CuPy": cupy.cuda.runtime.getDeviceCount() > 0, "torch": torch.cuda.is_available()}
except Exception as error:
    sys.exit(f"make bench-gpu measures a CUDA device, by CuPy and torch of {sys.executable}, and here {error}; name another with PYTHON=")
if blind := " and ".join(name for name, sees in seen.items() if not sees):
    sys.exit(f"make bench-gpu measures a CUDA device, and {blind} of {sys.executable} sees none; make bench measures the CPU")
endef
export DEVICE

# Before anything is installed or stored: a run without a device would leave its empty results as the newest.
device:
	@$(PYTHON) -c "$$DEVICE"

wheelhouse:
	rm -rf wheelhouse
	$(PYTHON) -m pip download --quiet --no-deps --only-binary=:all: --python-version $(GPU_PYTHON) --implementation cp \
		$(foreach glibc,17 24 27 28,--platform manylinux_2_$(glibc)_x86_64) --platform manylinux2014_x86_64 \
		--dest wheelhouse --requirement wheelhouse.txt
	@du -sh wheelhouse
	@test "$$(du -sm wheelhouse | cut -f1)" -le 64 || { echo "the wheels take more than 64 MiB; leave out of wheelhouse.txt what that machine has"; exit 1; }

# What runs there has to fit: a machine that is lent takes 64 MiB.
BUNDLE := build/device-bundle
device-bundle: wheelhouse
	rm -rf $(BUNDLE) $(BUNDLE).tar
	git clone --quiet --depth 1 "file://$(CURDIR)" $(BUNDLE)
	git -C $(BUNDLE) remote remove origin
	cp -R wheelhouse $(BUNDLE)
	tar -cf $(BUNDLE).tar -C $(BUNDLE) .
	rm -rf $(BUNDLE)
	@du --apparent-size -h $(BUNDLE).tar
	@test "$$(du --apparent-size -m $(BUNDLE).tar | cut -f1)" -le 60 || { echo "the bundle takes more than 60 MiB; prune results or wheelhouse.txt"; exit 1; }

# convbench-impls as source alone: a wheel of it would be of this system. .github/workflows/release.yml builds those for others.
PACKAGING := build/packaging
distributions:
	rm -rf dist $(PACKAGING)
	$(PYTHON) -m venv $(PACKAGING)
	$(PACKAGING)/bin/python -m pip install --quiet build twine
	$(PACKAGING)/bin/python -m build --outdir dist/convbench convbench
	$(PACKAGING)/bin/python -m build --sdist --outdir dist/convbench-impls .
	$(PACKAGING)/bin/python -m twine check --strict dist/*/*

# Without the CPU kernels, which are not timed there and take two minutes to compile.
$(GPU_VENV)/installed: pyproject.toml convbench/pyproject.toml meson.build wheelhouse.txt
	@test -d wheelhouse || { echo "no wheelhouse: run make wheelhouse where a network is, and carry the folder here"; exit 1; }
	$(PYTHON) -m venv --system-site-packages --without-pip $(GPU_VENV)
	@$(PYTHON) -c "$$BELOW" > "$$($(GPU_BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth"
	$(GPU_BIN)/python -m pip install --quiet --no-index --no-deps --find-links wheelhouse --requirement wheelhouse.txt
	$(GPU_PATH) $(GPU_BIN)/python -m pip install --quiet --no-index --no-deps --no-build-isolation -Csetup-args=-Dkernels=false --editable .
	PYTHONWARNINGS=ignore::UserWarning $(GPU_BIN)/python -m pip install --quiet --no-index --no-deps --no-build-isolation --editable ./convbench
	@touch $@

RUN_GPU = $(GPU_PATH) $(GPU_BIN)/convbench run --config asv.gpu.conf.json
TABLE_GPU = $(GPU_BIN)/convbench table --baseline gpu.torch --bench 'device_ceilings|transfers|conv2d\.(Device|Launches|ColdCache)'
# The implementations that docs/gpu.md has goals for, on all problems; the others on a few.
CANDIDATES := torch cupy_direct cupy_depthwise cupy_winograd cupy_ndimage

bench-gpu: device $(GPU_VENV)/installed
	@trap 'exit 130' INT TERM; status=0; $(RUN_GPU) $(CANDIDATES:%=--implementation gpu.%) --bench device_ceilings --bench transfers \
		--bench 'conv2d\.(Device|Launches|ColdCache)' || status=$$?; \
	$(RUN_GPU) --quick --implementation 'gpu.*' --implementation im2col.cupy --bench 'conv2d\.(Device|Launches)' || status=$$?; \
	$(TABLE_GPU) || status=$$?; exit $$status

# All but the ceilings of the CPU, whose kernels are not built there.
bench-gpu-full: device $(GPU_VENV)/installed
	@status=0; $(RUN_GPU) --implementation 'gpu.*' --implementation im2col.cupy --bench '^(?!ceilings\.)' || status=$$?; \
	$(TABLE_GPU) || status=$$?; exit $$status

dashboard: $(VENV)/tool
	@$(BIN)/convbench dashboard

speed: $(VENV)/installed
	$(BIN)/convbench speed

tune: $(VENV)/installed
	$(BIN)/convbench tune

gate-proof: $(VENV)/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH=tests/helpers $(BIN)/python tests/proofs/gate_proof.py

docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# OWNER stands for an account, and is no page.
links: docs
	$(BIN)/python -m pip install --quiet linkchecker==10.6.0
	$(BIN)/linkchecker --check-extern --ignore-url OWNER --no-warnings --no-status build/site/index.html

# Several files at a time, one more than there are cores since many wait for processes, but for what compares times. What was changed in a Cython file is compiled before, once.
# Tests of make itself begin without what another make has passed on.
TOGETHER = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(BIN)/python -m pytest --numprocesses $$(($$(nproc) + 1)) --maxprocesses 4 --dist loadfile --no-loadscope-reorder
test: $(VENV)/installed
	$(BIN)/python -c "import impls"
	$(TOGETHER) -m "not proof and not slow and not alone"
	$(BIN)/python -m pytest -m "not proof and not slow and alone"

test-all:
	@$(MAKE) --no-print-directory test-together
	@$(MAKE) --no-print-directory test-alone

test-together: $(VENV)/installed
	$(BIN)/python -c "import impls"
	$(TOGETHER) -m "not proof and not alone"

test-alone: $(VENV)/installed
	$(BIN)/python -m pytest -m "not proof and alone"

proofs: $(VENV)/installed
	$(BIN)/python -m pytest -m proof --timeout 3600

# Without the site module, .pth files are not read, so that the package installed in the environment is not found first.
SANITIZED := build/sanitized
SANITIZERS = $(foreach name,asan ubsan,$(shell $(firstword $(CC)) -print-file-name=lib$(name).so))
SITE = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
MINUTES ?= 10
SEED ?= 0

# With few optimisations and for AVX2, since with all of them, or for AVX-512, the sanitizers take half an hour to compile.
VECTORS := $(if $(filter x86_64,$(shell uname -m)),-march=x86-64-v3)

fuzz: $(VENV)/installed
	@echo "compiling the kernels for the sanitizers (five minutes the first time)"
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --upgrade --target $(SANITIZED) \
		-Cbuilddir=$(SANITIZED)-objects -Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Db_lundef=false \
		-Csetup-args=-Doptimization=1 \
		"-Csetup-args=-Dc_args=-fno-sanitize-recover=undefined $(VECTORS)" .
	@seed=$(SEED); end=$$(($$(date +%s) + 60 * $(MINUTES))); while [ $$(date +%s) -lt $$end ]; do \
		echo "seed $$seed"; \
		CONVBENCH_FUZZ=1000 ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$(SANITIZERS)" PYTHONPATH="$(SANITIZED):$(SITE)" \
			$(BIN)/python -S -P -m pytest --quiet --timeout 0 --hypothesis-seed $$seed -p no:cacheprovider tests/test_fuzz.py || \
			{ echo "repeat it with: make fuzz SEED=$$seed; what was tried last is in build/fuzz"; exit 1; }; \
		seed=$$((seed + 1)); done

# An environment of its own that finds the libraries of the other one: its kernels are slower, so nothing is measured with them.
PROFILED := build/profiled
profiled: $(VENV)/installed
	@echo "compiling the kernels for profilers (minutes, the first time)"
	$(BIN)/python -m venv --without-pip $(PROFILED)
	@echo "$(SITE)" > "$$($(PROFILED)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/libraries.pth"
	PATH="$(CURDIR)/$(BIN):$$PATH" CYTHON="$(CURDIR)/$(BIN)/cython" $(BIN)/python -m pip --python $(PROFILED)/bin/python install --quiet \
		--no-deps --no-build-isolation -Cbuilddir=$(PROFILED)-objects -Csetup-args=-Dprofile=true --editable .

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

smoke: $(VENV)/installed
	$(BIN)/convbench run --busy --implementation cpu.cython_direct --bench '^ceilings.*, 64 MiB' \
		--bench train_step.Networks --bench 'conv2d\.(ImageSize|Memory|Startup)' --bench 'conv2d\.Layers.*c1h28'
	$(BIN)/asv publish --no-pull
	$(BIN)/convbench table --bench ImageSize --bench Startup

overhead: $(VENV)/installed
	$(BIN)/convbench run --again --quick
	$(BIN)/convbench run --again --bench ColdCache --bench Startup --bench Threads
	$(BIN)/python tests/proofs/overhead.py

clean:
	rm -rf $(VENV) .asv .convbench html build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
