"""What the program says uses the field's words, or plain ones."""

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
