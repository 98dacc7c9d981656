"""Names of a multirun's folders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.help.pages import no_such_key, with_key_swept
from sim.sweeps.callback import warned
from sim.sweeps.configurations import LONGEST_NAME, folder_name

pytestmark = pytest.mark.fast

TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"))


def test_short_plain_overrides_are_the_name():
    assert folder_name("policy=easy,seed=3") == "policy=easy,seed=3"


@given(TEXT)
def test_any_overrides_make_one_safe_name(overrides):
    name = folder_name(overrides)
    assert name
    assert len(name) <= LONGEST_NAME + 9
    assert name.isascii()
    assert not set(name) & set("/\\:*?\"<>| '\n")
    assert name not in (".", "..")


@given(st.lists(TEXT, min_size=2, max_size=6, unique=True))
def test_different_overrides_make_different_names(many):
    assert len({folder_name(overrides) for overrides in many}) == len(many)


def test_long_overrides_differ_after_the_cut():
    start = "workload.jobs=1," * 20
    assert folder_name(f"{start}a=1") != folder_name(f"{start}a=2")


def test_warnings_that_differ_in_numbers_alone_are_told_once_with_their_runs(tmp_path):
    for run, said in {"a": ("5 jobs dropped",), "b": ("7 jobs dropped", "odd", "odd")}.items():
        log = tmp_path / run / "sim.log"
        log.parent.mkdir()
        log.write_text("".join(f"[sim][WARNING] - {one}\n" for one in said), encoding="utf-8")
    expected = {"5 jobs dropped (elsewhere with other numbers)": 2, "odd": 1}
    assert warned(tmp_path, "sim", {}) == expected
    assert warned(tmp_path, "sim", {tmp_path / "b/sim.log": log.stat().st_size}) == {
        "5 jobs dropped": 1
    }


COST = "policy/reallocation/cost"


def test_a_group_within_a_swept_one_is_looked_for_in_each_of_its_options():
    """Hydra looked for it in the defaults, whose policy reallocates nothing."""
    given = ["-m", "policy=equi,hesrpt", f"{COST}=constant", "seed=1,2"]
    refused = ValueError(f"Could not override '{COST}'.\nNo match in the defaults list.")
    told = with_key_swept(refused, given)
    assert told == ["-m", "policy=equi,hesrpt", f"{COST}=choice(constant)", "seed=1,2"]
    assert with_key_swept(refused, told) is None
    assert with_key_swept(refused, ["-m", "policy=equi", f"{COST}=constant", "seed=1,2"]) is None
    assert with_key_swept(ValueError("Could not load policy/equi"), given) is None


def test_a_group_that_the_chosen_policies_lack_names_who_has_it():
    told = no_such_key(f"{COST}=constant", COST, ["policy=easy,equi", f"{COST}=constant"])
    assert told.startswith(f"{COST}=constant: not with policy=easy; policy/reallocation=deq, equi,")


def test_a_key_that_some_of_the_swept_policies_lack_names_these():
    key = "policy.allocation.without_curve"
    said = f"{key}=request: not with policy=easy; policy/allocation=sa, sa_cautious have this key"
    for policies, rest in (
        ("easy", ""),
        ("easy,sa_easy", "; sweep each apart, into one hydra.sweep.dir"),
    ):
        told = no_such_key(f"{key}=request", key, ["policy=" + policies, f"{key}=request"])
        assert told == said + rest
