"""Complexities as people write them ("n^3", "n log n"), turned into columns of a regression.

A complexity is what a user knows of a kernel: its order. It stands for that
term and everything below it, because the order says nothing of the smaller
terms. All terms are n^power · (log n)^logs · exp(rate·n), so that sums and
products of them stay of that form and nothing that a user writes is executed.
"""

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from predictors.base import FloatArray, IntArray
from predictors.errors import PredictorError
from predictors.under_load.load_aware import LoadedRuns, Targets

POPULAR = ("1", "log n", "n", "n log n", "n^2", "n^3")
"""The list that ``"auto"`` chooses from."""

GROWTHS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "1/n": lambda nprocs: 1.0 / nprocs,
    "1": np.ones_like,
    "log2 n": np.log2,
    "n": lambda nprocs: nprocs + 0.0,
}
"""How communication may grow with the processor count n."""

PARTS = ("init", "computation", "communication", "messages")
"""The parts of a runtime, in the order of the columns."""

HIGHEST = 9
"""The highest degree: each brings all whole powers below it."""

WORDS = {"constant": "1", "linear": "n", "quadratic": "n^2", "cubic": "n^3"}
TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)"
    r"|(?P<function>(?:log10|log2|log|ln|lg|sqrt|exp)(?:\s*(?:\^|\*\*)\s*\d+)?)"
    r"|(?P<size>size|n)|(?P<sign>\*\*|[-+*/^()]))"
)
BARE = re.compile(r"([a-z]+\d*(?:_\d+)?) ((?:n|[\d.]+)(?:\*\*[\d.]+)?)")
"""A function, perhaps to a power, and what follows it without brackets."""


@dataclass(frozen=True, order=True)
class Term:
    """One term n^power · (log2 n)^logs · exp(rate·n) of a complexity.

    Examples
    --------
    >>> Term(1.0, 1.0).values(np.array([2.0, 4.0])).tolist()
    [2.0, 8.0]
    >>> str(Term(1.0, 1.0)), str(Term(0.0))
    ('n log n', '1')
    """

    power: float
    logs: float = 0.0
    rate: float = 0.0

    def values(self, size: FloatArray) -> FloatArray:
        """Return the term at each size; a `PredictorError` where it is not a number >= 0."""
        with np.errstate(all="ignore"):
            result = size if self.power == 1.0 else np.power(size, self.power)
            if self.logs:
                result = result * np.power(np.log2(size), self.logs)
            if self.rate:
                result = result * np.exp(self.rate * size)
        bad = ~(np.isfinite(result) & (result >= 0))
        if bad.any():
            raise PredictorError(
                f"the term {self} is not a finite number >= 0 at size {size[bad][0]:g}"
                + ("; logarithms need sizes of at least 1" if self.logs else "")
            )
        return np.asarray(result, float)

    def __str__(self) -> str:
        parts = []
        if self.power:
            parts.append("n" if self.power == 1 else f"n^{self.power:g}")
        if self.logs:
            parts.append("log n" if self.logs == 1 else f"log(n)^{self.logs:g}")
        if self.rate:
            parts.append(f"exp({self.rate:g} n)")
        return " ".join(parts) or "1"

    def lower(self) -> tuple["Term", ...]:
        """Return the terms that this order leaves open: whole powers below it, down to 1."""
        whole = math.floor(self.power)
        if whole == self.power and not self.logs and not self.rate:
            whole -= 1
        return tuple(Term(float(power)) for power in range(whole, -1, -1))


Expression = dict[Term, float]


class _Reader:
    """Sums, products and powers of terms, from what Python's parser makes of a text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, why: str) -> PredictorError:
        return PredictorError(
            f"complexity {self.text!r}: {why}; write an order of the size n, such as "
            "'n^3', 'n log n', 'n^2 + n', '2^n', or a degree such as 3"
        )

    def whole(self) -> Expression:
        if len(self.text) > 100:
            raise PredictorError(f"a complexity has {len(self.text)} characters; the limit is 100")
        try:
            return self.read(ast.parse(BARE.sub(r"\1(\2)", self.as_python()), mode="eval").body)
        except SyntaxError:
            raise self.fail("something is out of place or missing") from None

    def as_python(self) -> str:
        """Return the text with all signs, a function's power in its name and a blank behind it."""
        source, ends, at = "", False, 0
        while at < len(self.text.rstrip()):
            match = TOKEN.match(self.text, at)
            if match is None:
                raise self.fail(f"{self.text[at:].strip()[:12]!r} is not understood")
            kind, word, at = match.lastgroup, match[str(match.lastgroup)], match.end()
            if ends and (kind != "sign" or word == "("):
                source += "*"
            shown = re.sub(r"\W+", "_", word) + " " if kind == "function" else word
            source += {"^": "**", "size": "n"}.get(word, shown)
            ends = kind in ("number", "size") or word == ")"
        return source

    def read(self, node: ast.expr) -> Expression:
        match node:
            case ast.Constant(value=int() | float() as value) if 0 < value < 1e9:
                return {Term(0.0): float(value)}
            case ast.Name(id="n"):
                return {Term(1.0): 1.0}
            case ast.BinOp(left, ast.Add(), right):
                one, other = self.read(left), self.read(right)
                return {term: one.get(term, 0.0) + other.get(term, 0.0) for term in one | other}
            case ast.BinOp(left, ast.Mult(), right):
                return self.multiply(self.read(left), self.read(right))
            case ast.BinOp(left, ast.Div(), right):
                return self.multiply(self.read(left), self.raised(self.read(right), -1.0))
            case ast.BinOp(left, ast.Pow(), right):
                return self.power(self.read(left), self.read(right))
            case ast.Call(ast.Name(name), [inner]):
                name, _, exponent = name.partition("_")
                return self.raised(self.apply(name, self.read(inner)), float(exponent or 1))
        raise self.fail("terms are numbers, n, and sums, products, powers and functions of them")

    def power(self, base: Expression, exponent: Expression) -> Expression:
        (number,) = base.values() if set(base) == {Term(0.0)} else (None,)
        if number is not None and set(exponent) == {Term(1.0)}:
            return self.exponential(math.log(number) * exponent[Term(1.0)])
        if set(exponent) != {Term(0.0)}:
            raise self.fail("an exponent is a number, or n over a number")
        return self.raised(base, exponent[Term(0.0)])

    def apply(self, name: str, inner: Expression) -> Expression:
        if len(inner) != 1:
            raise self.fail(f"{name} takes a single term")
        ((term, factor),) = inner.items()
        if name == "sqrt":
            return self.raised(inner, 0.5)
        if name == "exp":
            if term != Term(1.0):
                raise self.fail("exp takes a multiple of n")
            return self.exponential(factor)
        if term.power <= 0 or term.logs or term.rate:
            raise self.fail(f"{name} takes a power of n")
        return {Term(0.0, 1.0): term.power}

    def exponential(self, rate: float) -> Expression:
        if rate <= 0:
            raise self.fail("an exponential must grow")
        return {Term(0.0, 0.0, rate): 1.0}

    def multiply(self, left: Expression, right: Expression) -> Expression:
        result: Expression = {}
        for a, factor in left.items():
            for b, other in right.items():
                term = Term(a.power + b.power, a.logs + b.logs, a.rate + b.rate)
                result[term] = result.get(term, 0.0) + factor * other
        return result

    def raised(self, base: Expression, exponent: float) -> Expression:
        if len(base) == 1:
            ((term, factor),) = base.items()
            scaled = (term.power * exponent, term.logs * exponent, term.rate * exponent)
            return {Term(*(x + 0.0 for x in scaled)): factor**exponent}
        if exponent != int(exponent) or not 1 <= exponent <= 9:
            raise self.fail("a sum can only be raised to a whole power from 1 to 9")
        result = base
        for _ in range(int(exponent) - 1):
            result = self.multiply(result, base)
        return result


@cache
def _parse(text: str) -> tuple[Term, ...]:
    """Read one expression; its terms, the largest first."""
    plain = text.strip().lower().replace("²", "^2").replace("³", "^3")
    plain = WORDS.get(plain, plain)
    bracketed = re.fullmatch(r"o\s*\((.*)\)", plain)
    reader = _Reader(bracketed[1] if bracketed else plain)
    terms = _in_order(reader.whole())
    for term in terms:
        if min(term.power, term.logs, term.rate) < 0:
            raise reader.fail(f"the term {term} falls with n")
        if term.power > HIGHEST:
            raise reader.fail(f"the term {term} is of a degree above {HIGHEST}")
    return terms


def _in_order(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return the distinct terms, the largest first."""
    return tuple(sorted(set(terms), key=lambda t: (t.rate, t.power, t.logs), reverse=True))


def complexity_terms(written: object) -> tuple[Term, ...]:
    """Turn one written complexity into its terms, the largest first.

    Parameters
    ----------
    written : int, str or sequence of str
        A degree d (all powers d..0), an order (``"n log n"``: that term, n and
        1; a sum stands for the orders of all of its terms), or a list, which
        names exactly the terms wanted.

    Raises
    ------
    PredictorError
        If it cannot be read; the message shows what can.

    Examples
    --------
    >>> [str(term) for term in complexity_terms("n log n")]
    ['n log n', 'n', '1']
    >>> complexity_terms(3) == complexity_terms("O(n^3)") == complexity_terms("cubic")
    True
    >>> [str(term) for term in complexity_terms(["n^3", "1"])]
    ['n^3', '1']
    """
    if isinstance(written, (int, float, np.integer)) and not isinstance(written, bool):
        if not 0 <= written <= HIGHEST or written != int(written):
            raise PredictorError(
                f"a degree must be a whole number from 0 to {HIGHEST}, got {written}"
            )
        return tuple(Term(float(power)) for power in range(int(written), -1, -1))
    if isinstance(written, str):
        if not written.strip():
            raise PredictorError("a complexity is empty; write an order such as 'n^2'")
        leading = _parse(written)
        return _in_order([*leading, *(low for term in leading for low in term.lower())])
    if isinstance(written, Iterable):
        named = [term for item in written for term in _parse(str(item))]
        if named:
            return _in_order(named)
    raise PredictorError(f"complexity {written!r} is neither a degree, text nor a list of terms")


def complexity_choices(written: object) -> tuple[tuple[Term, ...], ...]:
    """Return the alternatives that a written complexity leaves to the data.

    ``"n | n log n | n^2"`` names a list to choose from, ``"auto"`` the usual
    one (`POPULAR`); anything else is a single choice.

    Examples
    --------
    >>> len(complexity_choices("n | n log n | n^2")), len(complexity_choices(3))
    (3, 1)
    """
    if isinstance(written, str):
        names = POPULAR if written.strip().lower() == "auto" else tuple(written.split("|"))
        return tuple(complexity_terms(name) for name in names)
    return (complexity_terms(written),)


@dataclass(frozen=True)
class RationalForm:
    """Which columns a rational polynomial has.

    The runtime of size z on n processors is
    init(z) + computation(z) / (n · cpu)
    + (communication(z) / bandwidth + messages(z) · latency) · growth(n);
    with a single count in the data n is left out, as in the paper.

    Attributes
    ----------
    init, computation, communication : tuple of Term
        The largest term first.
    growth : str or None
        Key of `GROWTHS`; None where the processor count plays no part.
    largest : float
        The largest size seen, to which terms are scaled.
    messages : tuple of Term
        Of what waits for the latency of the links; none where it does not count.
    """

    init: tuple[Term, ...]
    computation: tuple[Term, ...]
    communication: tuple[Term, ...]
    growth: str | None
    largest: float
    messages: tuple[Term, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.parts()))

    def parts(self) -> tuple[tuple[Term, ...], ...]:
        """Return the terms of each part, in the order of the columns."""
        return tuple(getattr(self, name) for name in PARTS)

    def longest(self) -> int:
        """Return the largest number of terms in a part."""
        return max(map(len, self.parts()))

    def columns(self, runs: LoadedRuns | Targets, rows: FloatArray | None = None) -> FloatArray:
        """Return the design matrix, shape (rows, coefficients); `rows` are those at its sizes."""
        share, exchange = self.spread(runs.nprocs)
        factors = (1.0, share / runs.cpu, exchange / runs.bandwidth, exchange * runs.latency)
        own = zip(self.rows(runs.size) if rows is None else rows, self.part.tolist(), strict=True)
        return np.column_stack([row * factors[part] for row, part in own])

    def rows(self, size: FloatArray) -> FloatArray:
        """Return the term of each column over what it is at the largest size, (columns, sizes)."""
        found = {term: term.values(size) / most for term, most in self._references.items()}
        return np.array([found[term] for part in self.parts() for term in part])

    def spread(self, nprocs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what computation and communication are multiplied by on so many processors."""
        if self.growth is None:
            return np.ones_like(nprocs), np.ones_like(nprocs)
        return 1.0 / nprocs, GROWTHS[self.growth](nprocs)

    @cached_property
    def part(self) -> IntArray:
        """The part that each column belongs to, by its place."""
        return np.repeat(np.arange(4), [len(part) for part in self.parts()])

    @cached_property
    def _references(self) -> dict[Term, float]:
        """All terms at the largest size, 1 where they are 0 there."""
        at = np.array([self.largest])
        return {term: term.values(at).item() or 1.0 for part in self.parts() for term in part}

    def leading(self) -> "RationalForm":
        """Return the form with the leading terms alone, and its constant if it has one."""
        constant = Term(0.0)
        init = self.init[:1] + ((constant,) if constant in self.init[1:] else ())
        return replace(self, init=init, **{name: getattr(self, name)[:1] for name in PARTS[1:]})

    def names(self) -> list[tuple[str, str]]:
        """Return the part and the term of each column."""
        parts = zip(PARTS, self.parts(), strict=True)
        return [(name, str(term)) for name, terms in parts for term in terms]
