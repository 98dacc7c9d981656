"""``moldsim new KIND NAME``: class, YAML file and test of a part, written into the package here."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from sim.command.main import BAD_STATUS, TEMPLATES
from sim.errors import SimError
from sim.help.pages import PLUGINS, meant, options
from sim.results.durable import answering

JOBS = '"workload.jobs=20", '
"""What the test of a part says, but for that of a workload, which has jobs of its own."""
KINDS = {
    "policy": ("policy", ""),
    "allocation": ("policy/allocation", "share: 0.5  # of the request\n"),
    "order": ("policy/order", ""),
    "predictor": ("predictor", ""),
    "workload": ("workload", "jobs: 20  # how many jobs\nwidth: 4  # processors of each job\n"),
}
"""What is written for a kind of part: its group, and further keys."""
USAGE = f"""usage: moldsim new {"|".join(KINDS)} NAME

Writes NAME.py, conf/GROUP/NAME.yaml and tests/test_NAME.py into the package of this folder:
the folder itself, or the one package in it (a folder with __init__.py).
"""
ENTRY = """Its options are known by name wherever {top} is installed, if its pyproject.toml has

[project.entry-points."{plugins}"]
{top} = "{package}.conf"

[tool.setuptools.package-data]
"*" = ["*.yaml"]
"""


def package_at(here: Path) -> Path:
    """Return the folder of the one package here."""
    if (here / "__init__.py").is_file():
        return here
    inside = [path.parent for part in ("", "src") for path in (here / part).glob("*/__init__.py")]
    found = sorted(folder for folder in inside if folder.name != "tests")
    if len(found) != 1:
        none = "none (mkdir mylab; touch mylab/__init__.py)"
        names = ", ".join(folder.name for folder in found) or none
        raise SimError(
            f"{here}: one package is needed, a folder with __init__.py; there are: {names}"
        )
    return found[0]


def dotted(package: Path) -> tuple[str, Path]:
    """Return the dotted name of a package's folder, and the folder that the outermost lies in."""
    names, place = [package.name], package.parent
    while (place / "__init__.py").is_file():
        names.insert(0, place.name)
        place = place.parent
    return ".".join(names), place


def files(kind: str, name: str, package: Path) -> dict[Path, str]:
    """Return the files of a new part with their content.

    Raises
    ------
    SimError
        If the name is none, or the program has such an option already.
    """
    group, keys = KINDS[kind]
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise SimError(f"{name}: must be a name such as my_rule (small letters, digits, _)")
    if name in {one.name for one in options(group)}:
        raise SimError(f"{group}={name}: there is such an option already; choose another name")
    module, above = dotted(package)
    root = above.parent if above.name == "src" else above
    words = {
        f"new_{kind}": name,
        "new_part": name,
        "new_package": module,
        "new_group": group,
        f"New{kind.title()}": name.title().replace("_", ""),
    }

    def filled(template: str) -> str:
        text = (TEMPLATES / template).read_text(encoding="utf-8")
        return re.sub("|".join(words), lambda word: words[word[0]], text)

    code, test = filled(f"new_{kind}.py"), filled("new_trial.py")
    about = re.search(r'class .*?"""(.*?)\n?(?:"""|\n)', code, re.DOTALL)
    kept = f"# {about[1] if about else name}\n_target_: {module}.{name}."
    option = f"{kept}{words[f'New{kind.title()}']}\n{keys}"
    found = {
        package / f"{name}.py": code,
        package / "conf" / group / f"{name}.yaml": option,
        root / "tests" / f"test_{name}.py": test.replace(JOBS, "") if kind == "workload" else test,
    }
    if not (package / "conf" / "__init__.py").exists():
        found[package / "conf" / "__init__.py"] = f'"""Configuration of {module}."""\n'
    return found


@answering
def main(given: Sequence[str]) -> int:
    """Write the files of a new part; return the exit status."""
    if not given or {"--help", "-h"} & set(given):
        sys.stdout.write(USAGE)
        return 0 if given else BAD_STATUS
    kind = given[0]
    if kind not in KINDS:
        hint = meant(kind, KINDS, f"there are {', '.join(KINDS)}")
        raise SimError(f"new {kind}: there is no such kind; {hint}")
    if len(given) != 2:
        raise SimError(f"new {' '.join(given)}: a kind and a name are needed")
    package = package_at(Path.cwd())
    found = files(kind, given[1], package)
    there = [path for path in found if path.exists()]
    if there:
        raise SimError(f"{there[0]}: exists already; nothing was written")
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {os.path.relpath(path)}\n")
    name, _ = dotted(package)
    sys.stdout.write(ENTRY.format(top=name.split(".")[0], plugins=PLUGINS, package=name))
    return 0
