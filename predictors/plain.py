"""Text of files on a terminal: nothing in it is obeyed."""

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
