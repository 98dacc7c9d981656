"""What the program says uses the field's words, or plain ones."""

import ast
import re

import pytest

from scripts.list_messages import listed
from tests.docs.commands import PAGES, ROOT

pytestmark = pytest.mark.fast

OWN = re.compile(
    r"\b(is|are|be|was) (not )?told\b(?! apart)|\bhangs? on\b|\bgain (is )?kept\b"
    r"|\bkeeps [\w{} ]+ of (that|the oracle's) gain|\buntold\b|\bby predictor\b|^(.*: )?by policy\b"
)
"""Words of our own, which mean something only to those who wrote them."""


def test_messages_have_none_of_our_own_words():
    messages = listed()
    assert len(messages) > 1000
    assert [one for one in messages if OWN.search(one)] == []


def test_pages_and_comments_of_keys_have_none_either():
    texts = [page for page in PAGES if "results" not in page.parts]
    texts += [*(ROOT / "conf").rglob("*.yaml"), ROOT / "conf/help.txt"]
    texts += [*(ROOT / "sim").rglob("*.html")]
    for path in texts:
        found = OWN.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.name}: {found}"


def test_no_page_message_or_comment_of_a_key_has_words_that_are_not_in_the_glossary():
    ours = re.compile(r"(?<![\w./`])(?:beliefs?|believed|own predictions)\b(?!\.)|on the menu")
    pages = [ROOT / "README.md", *(page for page in PAGES if "results" not in page.parts)]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    for path in (ROOT / "conf").rglob("*.yaml"):
        lines = path.read_text(encoding="utf-8").splitlines()
        texts[path] = "\n".join(line.partition("#")[2] for line in lines)
    for path in (ROOT / "sim").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        read = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}  # docstrings
        said = (one for one in ast.walk(tree) if isinstance(one, ast.Constant))
        texts[path] = "\n".join(str(one.value) for one in said
                                if id(one) not in read and " " in str(one.value))  # fmt: skip
    assert {path: ours.findall(text) for path, text in texts.items() if ours.search(text)} == {}
