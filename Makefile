# The front door. `make bench` measures this machine, `make test` checks the project; each does its own set-up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help bench bench-full dashboard speed gate-proof test test-slow lint smoke overhead clean

help:
	@echo "make bench       install, measure a short selection for HEAD, publish, print the table (under ten minutes)"
	@echo "make bench-full  the same for every cell; prints its estimate first"
	@echo "make dashboard   publish what is stored and serve it, asv's pages needing no network: npm fetches what they take from others once"
	@echo "make speed       install, time ours in turn with torch, OpenCV and a copy, hold them against the goals, write docs/speed.md"
	@echo "make gate-proof  how right convbench gate is on this machine, and what it costs: an hour, goes on where it stopped"
	@echo "make test        install and run all tests"
	@echo "make test-slow   the proofs that take minutes"
	@echo "make lint        ruff and mypy"
	@echo "make smoke       every class with one implementation, checked and published"
	@echo "make overhead    what a cell costs beside the calls it times"
	@echo "make clean       remove everything that was installed or built here; results stay"

# Installed editable: a changed file is used at once, and a changed Cython file is compiled when it is next imported, by the
# compiler named here in full, so that nobody has to activate the environment for that.
$(VENV)/installed: pyproject.toml meson.build meson.options
	@command -v $(firstword $(CC)) >/dev/null || { echo "no C compiler: the Cython kernels need $(CC); install one (Debian: apt-get install gcc) or name it with CC="; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; name it with PYTHON="; exit 1; }
	@echo "installing into $(VENV) (about a minute, most of it torch)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "meson-python>=0.18" "meson>=1.4" ninja "Cython==3.3.1"
	PATH="$(CURDIR)/$(BIN):$$PATH" CYTHON="$(CURDIR)/$(BIN)/cython" $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[bench,libraries,test]'
	@touch $@

bench: $(VENV)/installed
	@status=0; $(BIN)/convbench run --quick || status=$$?; \
	$(BIN)/asv publish --no-pull && $(BIN)/convbench table || status=$$?; \
	echo "dashboard: html/index.html; see it with: $(BIN)/asv preview"; exit $$status

bench-full: $(VENV)/installed
	@status=0; $(BIN)/convbench run || status=$$?; \
	$(BIN)/asv publish --no-pull && $(BIN)/convbench table || status=$$?; exit $$status

dashboard: $(VENV)/installed
	@$(BIN)/convbench dashboard

speed: $(VENV)/installed
	$(BIN)/convbench speed

gate-proof: $(VENV)/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/gate_proof.py

# Several files at a time, but for what compares times. What was changed in a Cython file is compiled before, once.
test: $(VENV)/installed
	$(BIN)/python -c "import impls"
	$(BIN)/python -m pytest -m "not slow and not alone" --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m pytest -m "alone and not slow"

test-slow: $(VENV)/installed
	$(BIN)/python -m pytest -m slow --timeout 3600

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

smoke: $(VENV)/installed
	$(BIN)/convbench run --busy --implementation cpu.cython_direct --bench '^(?!.*Layers)' --bench 'Layers.*c1h28'
	$(BIN)/asv publish --no-pull
	$(BIN)/convbench table --bench ImageSize --bench Startup

overhead: $(VENV)/installed
	$(BIN)/convbench run --again --quick
	$(BIN)/convbench run --again --bench ColdCache --bench Startup --bench Threads
	$(BIN)/python tests/overhead.py

clean:
	rm -rf $(VENV) .asv .convbench html build
	find . -name __pycache__ -prune -exec rm -rf {} +
