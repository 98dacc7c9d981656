"""Whole processes, for what their beginning or their memory costs."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def command_environment() -> dict[str, str]:
    """Return the environment of a timed process: this tree's code, one thread, bytecode kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
