"""How a command answers for its errors: what is refused is one line, with status 2."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from sim.errors import BAD_INPUT, one_line
from sim.results.durable import output


def answering(main: Callable[[Any], int]) -> Callable[..., int]:
    """Let a command, a function of its arguments, say in one line what it refuses.

    It returns 2 then. Output that cannot be written is told as `output` says.
    """

    @wraps(main)
    def answered(given: Any = None) -> int:
        status = 0
        with output():
            try:
                status = main(given)
            except BAD_INPUT as error:
                if isinstance(error, OSError) and error.filename is None:  # of the output
                    raise
                sys.stderr.write(f"error: {one_line(error)}\n")
                status = 2
        return status

    return answered
