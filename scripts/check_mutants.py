"""Apply each wrong variant of tests/mutants.toml to a copy of the tree: its test must fail.

Tests run in plain Python, so that nothing is compiled anew for each variant.

Usage: python -m scripts.check_mutants [NAME ...]   (parts of the names of those to try)
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("sim", "predictors", "workloads", "conf", "hydra_plugins", "benchmarks", "scripts",
          "tests", "pyproject.toml")  # fmt: skip


def mutants() -> list[dict[str, str]]:
    """Return the variants: what each is called, where it is, and which test fails."""
    text = (ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["mutant"])


def mutated(mutant: dict[str, str], text: str) -> str:
    """Return the text of a file with the variant in the place of what is right."""
    if text.count(mutant["old"]) != 1:
        times = text.count(mutant["old"])
        sys.exit(f"{mutant['name']}: {mutant['file']} has its text {times} times, not once")
    return text.replace(mutant["old"], mutant["new"])


def status(tree: Path, test: str) -> int:
    """Return how the test ends in a tree: 0 passed, 1 failed, other numbers did not run."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["NUMBA_DISABLE_JIT"] = "1"
    asked = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", test]
    ended = subprocess.run(asked, cwd=tree, env=environment, capture_output=True, check=False)
    return ended.returncode


def survives(mutant: dict[str, str], tree: Path) -> bool:
    """Say whether the test does not notice the variant."""
    path = tree / mutant["file"]
    right = path.read_text(encoding="utf-8")
    kept = path.stat()
    path.write_text(mutated(mutant, right), encoding="utf-8")
    try:
        found = status(tree, mutant["test"])
    finally:
        path.write_text(right, encoding="utf-8")
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    if found not in (0, 1):
        sys.exit(f"{mutant['name']}: {mutant['test']} did not run (pytest ended with {found})")
    return found == 0


def main() -> None:
    wanted = [one for one in mutants() if not sys.argv[1:] or any(
        part in one["name"] for part in sys.argv[1:])]  # fmt: skip
    alive = []
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            source, target = ROOT / name, Path(folder, name)
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)
        for mutant in wanted:
            lives = survives(mutant, Path(folder))
            print(f"{'SURVIVES' if lives else 'caught'}: {mutant['name']}", flush=True)
            alive += [mutant["name"]] if lives else []
    sys.exit(f"{len(alive)} of {len(wanted)} wrong variants are not noticed" if alive else 0)


if __name__ == "__main__":
    main()
