"""Text of files on a terminal: nothing in it is obeyed."""

from logging import LogRecord
from unicodedata import category


def shown_plainly(text: str) -> str:
    r"""Return text without characters that a terminal obeys.

    Examples
    --------
    >>> shown_plainly("a\x1b[2Jb")
    'a�[2Jb'
    """
    if text.isprintable():
        return text
    return "".join("\ufffd" if category(one) == "Cc" and one != "\n" else one for one in text)


def told_plainly(record: LogRecord) -> bool:
    """Make what a logger says plain; it lets all pass."""
    record.msg, record.args = shown_plainly(record.getMessage()), ()
    return True
