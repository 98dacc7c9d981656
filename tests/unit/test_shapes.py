"""Families of shapes: formulas against hand-worked values, ranges of draws, limits, errors."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from workloads.errors import WorkloadError
from workloads.shapes.analytic import Amdahl, Downey, General, PowerLaw
from workloads.shapes.family import NoMoldability, allowed_counts
from workloads.shapes.irregular import Declining, Stepwise
from workloads.shapes.measured import Measured
from workloads.truth.options import TRUTH_KEYS, TruthOptions

pytestmark = pytest.mark.fast

CONF = Path(__file__).resolve().parents[2] / "conf" / "moldability"
MODELS = [Downey, Amdahl, General, PowerLaw, Stepwise, Declining]
P = 96


def draw(family, applications=200, processors=P, seed=1):
    return family.draw(np.random.default_rng(seed), applications, processors)


def grid(shapes, processors=P):
    """g of every application (rows) at counts 1..processors (columns)."""
    n = np.arange(1, processors + 1)
    rows = np.repeat(np.arange(len(shapes)), processors)
    return shapes.g(rows, np.tile(n, len(shapes))).reshape(len(shapes), processors)


def at(shapes, *counts):
    return shapes.g(np.zeros(len(counts), np.int64), np.array(counts)).tolist()


@pytest.fixture
def measurements(tmp_path):
    """Two curves: one from n = 1 with repeats, one from n = 4 that rises at its end."""
    lines = [
        "application,problem,size,nprocs,runtime_s,comp_s,comm_s,rep",
        "CG,small,1,1,100,,10,1",
        "CG,small,1,2,61,,12,1",
        "CG,small,1,2,59,,12,2",
        "CG,small,1,2,90,,45,3",
        "CG,small,1,8,20,,10,1",
        "FT,large,9,4,50,40,,1",
        "FT,large,9,16,20,10,,1",
        "FT,large,9,64,30,10,,1",
        "EP,single,1,4,50,,,1",
    ]
    file = tmp_path / "curves.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("family", MODELS)
def test_every_model_starts_at_one_and_its_limit_is_the_fastest_count(family):
    g = grid(draw(family()))
    assert (g[:, 0] == 1.0).all()
    assert np.isfinite(g).all()
    assert (g > 0).all()
    shapes = draw(family())
    for application in range(0, 200, 7):
        limit = shapes.largest_useful(application)
        fastest = g[application].min()
        if family is not Declining:
            assert g[application, limit - 1] <= fastest * (1 + 1e-11)
            assert (g[application, : limit - 1] > fastest * (1 - 1e-15)).all()


@pytest.mark.parametrize("family", MODELS)
def test_more_applications_leave_the_first_ones_alone(family):
    np.testing.assert_array_equal(grid(draw(family(), 3)), grid(draw(family(), 40))[:3])


@pytest.mark.parametrize("family", MODELS)
def test_restricting_counts_leaves_the_curves_alone(family):
    restricted = draw(family(counts="powers_of_two"))
    np.testing.assert_array_equal(grid(draw(family())), grid(restricted))
    assert set(restricted.limits(np.arange(200)).tolist()) <= {1, 2, 4, 8, 16, 32, 64}


def test_downey_draws_parallelism_log_uniform_and_variance_uniform():
    curve = draw(Downey(), 20_000, processors=256).curve
    log_share = np.log(curve.A) / np.log(256)
    assert log_share.min() >= 0
    assert log_share.max() <= 1
    np.testing.assert_allclose(
        np.quantile(log_share, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.02
    )
    np.testing.assert_allclose(
        np.quantile(curve.sigma, [0.25, 0.5, 0.75]), [0.5, 1, 1.5], atol=0.03
    )
    ranged = draw(Downey(parallelism_min=8, parallelism_max=16, sigma_min=1, sigma_max=1)).curve
    assert ((ranged.A >= 8) & (ranged.A <= 16) & (ranged.sigma == 1)).all()


def test_general_formula_and_its_special_cases():
    fixed = {"parallelism_min": 8, "parallelism_max": 8, "serial_min": 0.25, "serial_max": 0.25}
    fixed |= {"communication_min": 1 / 64, "communication_max": 1 / 64}
    general = draw(General(**fixed), 1)
    # (1/4 + 1/4 + 3/64) / 1.25; beyond 8 the work no longer shrinks
    assert at(general, 4, 16) == pytest.approx([(0.5 + 3 / 64) / 1.25, (0.375 + 15 / 64) / 1.25])
    assert general.largest_useful(0) == 8
    assert at(draw(General(model="roofline", **fixed), 1), 4, 8, 32) == [0.25, 0.125, 0.125]
    communication = draw(General(model="communication", **fixed), 1)
    assert at(communication, 8, 64) == pytest.approx([1 / 8 + 7 / 64, 1 / 64 + 63 / 64])
    assert communication.largest_useful(0) == 8  # sqrt(64)
    assert at(draw(General(model="amdahl", **fixed), 1), 4) == pytest.approx([0.4])
    assert at(draw(Amdahl(serial_min=0.25, serial_max=0.25), 1), 4) == pytest.approx([0.4])


def test_general_ranges():
    curve = draw(General(), 20_000, processors=512).curve
    assert (curve.nbar.min(), curve.nbar.max()) == (1, 512)
    assert np.log10([curve.d.min(), curve.d.max()]) == pytest.approx([-3, -0.5], abs=0.01)
    assert np.log10([curve.c.min(), curve.c.max()]) == pytest.approx([-6, -2], abs=0.01)
    assert np.median(np.log10(curve.c)) == pytest.approx(-4, abs=0.05)


def test_communication_is_what_the_shape_says():
    fixed = {"serial_min": 0, "serial_max": 0, "communication_min": 0.01, "communication_max": 0.01}
    shapes = draw(General(parallelism_min=64, parallelism_max=64, **fixed), 1)
    zero = np.zeros(2, np.int64)
    assert shapes.communication(zero, np.array([1, 11])) == pytest.approx([0, 0.1 / (1 / 11 + 0.1)])
    amdahl = draw(Amdahl(serial_min=0.25, serial_max=0.25), 1)
    # T(4) = 0.4 of which 0.25 would be perfect
    assert amdahl.communication(zero, np.array([1, 4])) == pytest.approx([0, 0.375])


def test_stepwise_is_superlinear_at_its_steps():
    shapes = draw(Stepwise(at=[8, 32], gain_min=0.5, gain_max=0.5, serial_min=0, serial_max=0), 1)
    assert at(shapes, 7, 8, 31, 32) == pytest.approx([1 / 7, 1 / 16, 1 / 62, 1 / 128])
    g = grid(draw(Stepwise()))
    work = g * np.arange(1, P + 1)
    assert (np.diff(work, axis=1) < 0).any(axis=1).mean() > 0.9
    assert (np.diff(g, axis=1) < 0).all()


def test_declining_rises_beyond_its_minimum_and_offers_it():
    shapes = draw(Declining(fastest_min=10, fastest_max=10), 5)
    g = grid(shapes)
    assert (g.argmin(axis=1) == 9).all()
    assert (np.diff(g[:, 9:], axis=1) > 0).all()
    assert shapes.limits(np.arange(5)).tolist() == [20] * 5
    assert draw(Declining(fastest_min=10, fastest_max=10, reach=1), 1).largest_useful(0) == 10


def test_power_law():
    assert at(draw(PowerLaw(exponent_min=0.5, exponent_max=0.5), 1), 4, 64) == [0.5, 0.125]


def test_no_moldability_knows_nothing():
    shapes = draw(NoMoldability(), 3)
    assert not shapes.known
    assert np.isnan(grid(shapes)).all()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("any", None),
        ("powers_of_two", [1, 2, 4, 8, 16]),
        ("squares", [1, 4, 9, 16, 25]),
        ("even", list(range(2, 26, 2))),
        ("multiples_of_12", [12, 24]),
        ("multiples_of_40", []),
    ],
)
def test_allowed_counts(rule, expected):
    allowed = allowed_counts(rule, 25)
    assert expected is None if allowed is None else allowed.tolist() == expected


def test_restricted_limit_is_the_faster_neighbour():
    fixed = {"parallelism_min": 12, "parallelism_max": 12, "sigma_min": 0, "sigma_max": 0}
    # sigma = 0: nothing gained beyond A = 12, 16 is faster than 8
    assert draw(Downey(counts="powers_of_two", **fixed), 1).largest_useful(0) == 16
    assert draw(Downey(counts="powers_of_two", **fixed), 1, processors=15).largest_useful(0) == 8
    assert draw(Downey(counts="multiples_of_4", **fixed), 1).largest_useful(0) == 12
    assert draw(Downey(counts="multiples_of_6", **fixed), 1).allowed(0).tolist() == list(
        range(6, P + 1, 6)
    )


def test_several_rules_are_shared_out():
    shapes = draw(Downey(counts=["any", "squares"]), 400)
    unrestricted = [shapes.allowed(application) is None for application in range(400)]
    assert 0.4 < np.mean(unrestricted) < 0.6


def test_measured_medians_interpolation_and_ends(measurements):
    shapes = draw(Measured(path=str(measurements)), 2)
    cg = 0 if shapes.curve.last[0] == 8 else 1
    ft = 1 - cg
    g = grid(shapes)
    assert g[cg, [0, 1, 7, 50]].tolist() == pytest.approx([1, 0.61, 0.2, 0.2])
    # half way between 2 and 8 in log n: the geometric mean
    assert g[cg, 3] == pytest.approx(np.sqrt(0.61 * 0.2))
    # below n0 = 4 constant work: T(1) = 200
    assert g[ft, [0, 1, 2, 3, 15, 63, 90]] == pytest.approx(
        np.array([200, 100, 200 / 3, 50, 20, 30, 30]) / 200
    )
    assert g[ft, 7] == pytest.approx(np.sqrt(50 * 20) / 200)
    assert shapes.serial_assumed[[cg, ft]].tolist() == [False, True]
    assert shapes.limits(np.array([cg, ft])).tolist() == [8, 64]
    assert draw(Measured(path=str(measurements)), 2, processors=16).limits(
        np.array([cg, ft])
    ).tolist() == [8, 16]


def test_measured_communication_where_recorded(measurements):
    shapes = draw(Measured(path=str(measurements)), 2)
    cg = 0 if shapes.curve.last[0] == 8 else 1
    share = shapes.communication(np.full(4, cg), np.array([1, 2, 8, 60]))
    # repeats of n = 2: 12/61, 12/59, 45/90, median 12/59
    assert share == pytest.approx([0.1, 12 / 59, 0.5, 0.5])
    share = shapes.communication(np.full(4, 1 - cg), np.array([1, 4, 16, 64]))
    assert share == pytest.approx([0.2, 0.2, 0.5, 2 / 3])


def test_measured_draws_every_curve_before_one_comes_again(measurements):
    shapes = draw(Measured(path=str(measurements.parent)), 6)
    pairs = shapes.curve.last.reshape(3, 2)
    assert (np.sort(pairs, axis=1) == [8, 64]).all()
    few = draw(Measured(path=str(measurements), first_count_max=1), 3)
    assert few.curve.last.tolist() == [8, 8, 8]


def test_measured_reads_real_files(scaling):
    family = Measured(path=str(scaling))
    assert len(family.curves) == 98
    assert len(Measured(path=str(scaling / "w*.csv")).curves) == 8
    shapes = draw(family, 98, processors=512)
    g = grid(shapes, 512)
    assert (g[:, 0] == 1).all()
    assert np.isfinite(g).all()
    for curve in family.curves[:20]:
        application = next(
            i for i in range(98) if g[i, curve.nprocs[0] - 1] and _is(shapes, i, curve)
        )
        small = curve.nprocs[curve.nprocs <= 512]
        ratio = g[application, small - 1] / g[application, small[0] - 1]
        np.testing.assert_allclose(
            ratio, curve.runtime[: len(small)] / curve.runtime[0], rtol=1e-12
        )


def _is(shapes, application, curve):
    n = curve.nprocs
    g = shapes.g(np.full(len(n), application), n)
    return np.allclose(g * curve.runtime[0] * n[0], curve.runtime, rtol=1e-9) and (
        shapes.curve.last[application] == n[-1]
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "lacks the column application, problem, nprocs, runtime_s"),
        ("application,problem,nprocs,runtime_s\nx,y,2,5\nx,y,4,-1\n", "line 3: runtime_s must be"),
        ("application,problem,nprocs,runtime_s\nx,y,2.5,5\n", "line 2: nprocs must be a whole"),
        ("application,problem,nprocs,runtime_s\nx,y,two,5\n", "line 2: nprocs must be a whole"),
        ("application,problem,nprocs,runtime_s\nx,y,2,5\n", "no curve has two"),
        ("", "not a CSV file"),
    ],
)
def test_bad_measurements_name_file_and_line(tmp_path, content, message):
    file = tmp_path / "bad.csv"
    file.write_text(content)
    with pytest.raises(WorkloadError, match=message):
        Measured(path=str(file))


def test_measured_without_files(tmp_path):
    with pytest.raises(WorkloadError, match=r"moldability\.path"):
        Measured()
    with pytest.raises(WorkloadError, match=r"moldability\.path=.*no such file"):
        Measured(path=str(tmp_path / "none*.csv"))


@pytest.mark.parametrize(
    ("family", "arguments", "key"),
    [
        (Downey, {"parallelism_min": 0.5}, "parallelism_min"),
        (Downey, {"parallelism_min": 9, "parallelism_max": 4}, "parallelism_max"),
        (Downey, {"sigma_min": -1}, "sigma_min"),
        (Downey, {"sigma_max": float("inf")}, "sigma_max"),
        (Downey, {"counts": "odd"}, "counts"),
        (Downey, {"counts": "multiples_of_0"}, "counts"),
        (Downey, {"counts": []}, "counts"),
        (General, {"model": "linear"}, "model"),
        (General, {"communication_min": 0, "communication_max": 0.1}, "communication_min"),
        (Amdahl, {"serial_min": 0.5, "serial_max": 0.1}, "serial_max"),
        (PowerLaw, {"exponent_max": 1.5}, "exponent_max"),
        (Stepwise, {"at": [1]}, "at"),
        (Stepwise, {"steps": 6}, "steps"),
        (Stepwise, {"gain_min": 0}, "gain_min"),
        (Stepwise, {"serial_max": 2}, "serial_max"),
        (Declining, {"reach": 0.5}, "reach"),
        (Declining, {"steepness_min": 0}, "steepness_min"),
        (Measured, {"path": "x", "first_count_max": 0}, "first_count_max"),
    ],
)
def test_bad_arguments_name_their_key(family, arguments, key):
    with pytest.raises(WorkloadError, match=rf"moldability\.{key}"):
        family(**arguments)


@pytest.mark.parametrize("file", sorted(CONF.glob("*.yaml")), ids=lambda file: file.stem)
def test_configuration_lists_every_argument_with_its_default(file):
    node = OmegaConf.load(file)
    lines = file.read_text().splitlines()
    assert all("#" in line for line in lines if not line.startswith("_target_"))
    options = {key: node.pop(key) for key in TRUTH_KEYS}
    assert TruthOptions(**options) == TruthOptions()
    if node.get("path", "") is None:
        node.path = "unused"
        module, _, name = node._target_.rpartition(".")
        family = getattr(__import__(module, fromlist=[name]), name)
    else:
        family = type(instantiate(node))
    parameters = inspect.signature(family).parameters
    assert set(node) - {"_target_"} == set(parameters)
    for name, parameter in parameters.items():
        assert name == "path" or node[name] == parameter.default
