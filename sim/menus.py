"""Which counts a run's rules choose among: each rule's own menu, or one for all (``menu``)."""

from collections.abc import Mapping
from typing import Any

from sim.build import accepted, default
from sim.policies.advice import check_counts

KEY = "policy.allocation"


def has_menu(policy: Mapping[str, Any]) -> bool:
    """Say whether a policy's allocation chooses among counts; fixed counts and requests do not."""
    allocation = policy.get("allocation")
    return isinstance(allocation, Mapping) and "counts" in accepted(allocation["_target_"], KEY)


def with_menu(policy: Mapping[str, Any], menu: str | None) -> dict[str, Any]:
    """Return a policy's configuration whose allocation chooses among the counts of one menu.

    Parameters
    ----------
    policy : mapping
        The ``policy`` part of a configuration.
    menu : {"powers_of_two", "all"} or None
        None leaves each rule its own.

    Raises
    ------
    ConfigError
        If there is no class of the allocation's name.

    Examples
    --------
    >>> knee = {"allocation": {"_target_": "sim.policies.allocation.curve.Knee"}}
    >>> with_menu(knee, "powers_of_two")["allocation"]["counts"]
    'powers_of_two'
    >>> fixed = {"allocation": {"_target_": "sim.policies.allocation.rigid.Fixed"}}
    >>> with_menu(fixed, "powers_of_two") == fixed
    True
    """
    if menu is None or not has_menu(policy):
        return dict(policy)
    return {**policy, "allocation": {**policy["allocation"], "counts": check_counts(menu)}}


def menu_name(policy: Mapping[str, Any], menu: str | None = None) -> str | None:
    """Return the menu that a policy's allocation chooses from, None where it has none.

    Malleable jobs under a reallocation, which are given counts by that alone, have none.

    Parameters
    ----------
    policy : mapping
        The ``policy`` part of a configuration.
    menu : {"powers_of_two", "all"} or None
        The run's top-level key.

    Examples
    --------
    >>> menu_name({"allocation": {"_target_": "sim.policies.allocation.curve.Knee"}})
    'all'
    >>> menu_name({"allocation": {"_target_": "sim.policies.allocation.rigid.Request"}}, "all")
    """
    if not has_menu(policy):
        return None
    allocation = with_menu(policy, menu)["allocation"]
    return str(allocation.get("counts", default(allocation["_target_"], "counts", KEY)))
