"""The toys of the program's own tests, and its tests that hold for every rule."""

import sys
from pathlib import Path

from hypothesis import settings

settings.register_profile("any_machine", deadline=None)  # others may be at work on it
settings.load_profile("any_machine")
TESTS = Path(__file__).resolve().parents[3] / "tests"
sys.path += [str(TESTS), str(TESTS / "unit"), str(TESTS / "property")]
