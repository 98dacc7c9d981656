"""The examples of the page on predictors give what they say."""

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "predictors.md"


def test_examples_of_the_page():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0
