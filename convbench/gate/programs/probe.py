"""`python probe.py PROJECT` prints what its interpreter has installed, as JSON."""

import importlib.util
import json
import platform
import re
import sys
from importlib import metadata


def main(project):
    packages, editable, modules = {}, {}, {}
    names = {project, project.lower(), _normal(project)}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if not name or name in packages:  # the first on the path is the one that is imported
            continue
        packages[name] = distribution.version
        source = json.loads(distribution.read_text("direct_url.json") or "{}")
        if source.get("dir_info", {}).get("editable"):
            editable[name] = source["url"]
        if _normal(name) == _normal(project):
            names.update(file.parts[0].partition(".")[0] for file in distribution.files or ())
    for name in sorted({*names, "asv_runner"}):
        if name.isidentifier() and (file := _file(name)):
            modules[name] = file
    python = f"{platform.python_implementation()} {platform.python_version()}"
    path = [entry for entry in sys.path[1:] if entry]  # without the folder of this file
    print(json.dumps({"python": python, "path": path, "packages": packages, "editable": editable, "modules": modules}))


def _normal(name):
    return re.sub(r"[-_.]+", "_", name).lower()


def _file(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), None))


if __name__ == "__main__":
    main(sys.argv[1])
