"""The pages on the library give what they say, and the API page has every public name."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import predictors
import sim
import workloads

pytestmark = pytest.mark.fast

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
NAMES = [(p, name) for p in (sim, predictors, workloads) for name in p.__all__]


@pytest.mark.parametrize("page", ["library.md", "extend.md"])
def test_examples_of_the_pages(page):
    found = doctest.testfile(str(GUIDE / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 3
    assert found.failed == 0


def test_the_api_page_has_every_public_name_and_no_other():
    listed = re.findall(r"^::: (\S+)$", (GUIDE / "api.md").read_text("utf-8"), re.MULTILINE)
    expected = [f"{package._MODULES[name]}.{name}" for package, name in NAMES]
    assert sorted(listed) == sorted(expected)


@pytest.mark.parametrize(("package", "name"), NAMES, ids=lambda one: str(one))
def test_every_public_name_has_an_example(package, name):
    one = getattr(package, name)
    is_error = inspect.isclass(one) and issubclass(one, Exception)
    pages = (GUIDE / "library.md").read_text("utf-8"), (GUIDE / "extend.md").read_text("utf-8")
    on_page = any(
        f"{package.__name__}.{name}(" in text or f": sim.{name}," in text for text in pages
    )
    assert is_error or ">>> " in (inspect.getdoc(one) or "") or on_page
