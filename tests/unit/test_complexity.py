import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.under_load.complexity import POPULAR, Term, complexity_choices, complexity_terms

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (0, ["1"]),
        (3, ["n^3", "n^2", "n", "1"]),
        ("n^3", ["n^3", "n^2", "n", "1"]),
        ("O(N**2)", ["n^2", "n", "1"]),
        ("n²", ["n^2", "n", "1"]),
        ("n log n", ["n log n", "n", "1"]),
        ("n*log2(n)", ["n log n", "n", "1"]),
        ("nlogn", ["n log n", "n", "1"]),
        ("n^2 + n log n", ["n^2", "n log n", "n", "1"]),
        ("n(n+1)/2", ["n^2", "n", "1"]),
        ("(n + 1)^2", ["n^2", "n", "1"]),
        ("n^(3/2)", ["n^1.5", "n", "1"]),
        ("sqrt(n)", ["n^0.5", "1"]),
        ("log(n)^2", ["log(n)^2", "1"]),
        ("log^2 n", ["log(n)^2", "1"]),
        ("2^(n/8)", ["exp(0.0866434 n)", "1"]),
        ("exp(n/4)", ["exp(0.25 n)", "1"]),
        (["n^3", "1"], ["n^3", "1"]),
        (["n log n", "n"], ["n log n", "n"]),
    ],
)
def test_complexities_stand_for_their_terms(written, names):
    assert [str(term) for term in complexity_terms(written)] == names


@pytest.mark.parametrize(
    "written",
    [
        *("", "n - 1", "m^2", "1/n", "n^-1", "n^n", "log(n+1)", "(n", "n)", "2^", "0*n"),
        *("exp(n^2)", "__import__('os').system('ls')", "(" * 99, "n" * 200),
        *(-1, 1.5, 10, np.nan, np.inf, True, None, [], {}, "n^99999", ["n^10"], "2^n n^12"),
    ],
)
def test_what_is_no_complexity_is_refused_with_its_text(written):
    with pytest.raises(PredictorError):
        complexity_terms(written)


def test_values_are_those_of_the_formula():
    size = np.array([1.0, 2.0, 1024.0])
    np.testing.assert_allclose(Term(2.0, 1.0).values(size), size**2 * np.log2(size))
    np.testing.assert_allclose(Term(0.0, 0.0, 0.01).values(size), np.exp(0.01 * size))


def test_a_logarithm_below_one_is_refused():
    with pytest.raises(PredictorError, match="at least 1"):
        Term(1.0, 1.0).values(np.array([0.5]))


def test_choices_are_lists_of_complexities():
    assert complexity_choices("n | n^2") == (complexity_terms("n"), complexity_terms("n^2"))
    assert len(complexity_choices("auto")) == len(POPULAR)
    with pytest.raises(PredictorError):
        complexity_choices("n | ")
