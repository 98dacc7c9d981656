"""The README's example of a new allocation rule works as it stands."""

import re
from pathlib import Path

from moldable_toys import truth_of
from toys import ToyOracle

from sim.engine import simulate
from sim.machine import Dedicated
from sim.policies import Policy
from sim.policies.backfill.easy import Easy
from sim.policies.order import FirstComeFirstServed

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_example_of_a_new_rule_allocates_half_of_the_request():
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    names: dict = {}
    exec(next(block for block in blocks if "class Half" in block), names)
    rows = [(0, 4, 6), (0, 1, 24), (0, 3, 8)]
    trace, truth = truth_of(rows, [lambda n: 24 / n] * 2 + [None], 8)
    policy = Policy(FirstComeFirstServed(), Easy(), names["Half"]())
    records = simulate(trace, truth, policy, ToyOracle(truth), Dedicated(8))
    assert records.allocated.tolist() == [2, 1, 3]
