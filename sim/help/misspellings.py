"""What was probably meant: misspelt keys, groups, options and commands, each in one line."""

import difflib
import os
import re
from collections.abc import Iterable, Sequence

from sim.help.pages import default_parts, every_line, inner_groups, options

SEE = "moldsim help keys lists all"


def known_keys() -> list[str]:
    """Return every group and key that a command line may set."""
    names = (label.partition("=")[0] for label, _ in every_line() if not label.startswith(" "))
    return list(dict.fromkeys(names))


NAME = re.compile(r"=(?!(?:null|true|false)$)[A-Za-z_][^=]*$", re.IGNORECASE)
"""The end of an override that names an option, not a value of YAML."""
LEAST, NEAR, MOST = 0.65, 0.06, 3
"""Likeness below which nothing is offered, how much less than the best is, and how many are."""


def meant(name: str, among: Iterable[str], otherwise: str) -> str:
    """Return a question that offers the nearest names, or something else without any.

    Examples
    --------
    >>> meant("esy", ["easy", "sa"], "see help")
    'did you mean easy?'
    >>> meant("policy.ordr", ["policy.order", "policy.worth", "policy"], "see help")
    'did you mean policy.order?'
    """
    rated = sorted(((_likeness(name, one), one) for one in dict.fromkeys(among)), reverse=True)
    best = rated[0][0] if rated else 0.0
    near = [one for rate, one in rated if rate >= max(LEAST, best - NEAR)][:MOST]
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def _likeness(name: str, other: str) -> float:
    """Return how alike two names are, from 0 to 1; those below the same key are nearer."""
    (above, _, own), (other_above, _, last) = (
        one.replace("/", ".").rpartition(".") for one in (name, other)
    )
    if above and above == other_above:
        return (1.0 + difflib.SequenceMatcher(None, own, last).ratio()) / 2
    return difflib.SequenceMatcher(None, name, other).ratio()


def no_such_key(override: str, key: str, given: Sequence[str] = ()) -> str:
    """Return the message about an override of a key that there is not, or not with all `given`."""
    known = known_keys()
    if key not in known:
        return f"{override}: there is no such key; {meant(key, known, SEE)}"
    group = next((g for g in sorted(groups(), key=len, reverse=True) if _within(key, g)), "")
    inside = {o.name: {*default_parts(o.path), *(k.name for k in o.keys)} for o in options(group)}
    having = [name for name, inner in inside.items() if key[len(group) + 1 :] in inner]
    if not having:
        return f"{override}: no option of {group or 'a group'} has this key; {SEE}"
    have = "has this key" if len(having) == 1 else "have this key"
    above, _, part = group.rpartition("/")
    chosen = dict(one.partition("=")[::2] for one in given).get(above, "").split(",")
    mine = (one for one in options(above) if one.name in chosen)
    lack = [one.name for one in mine if default_parts(one.path).get(part) not in having]
    without = f"{above}={', '.join(lack)}" if lack else f"the chosen {group}"
    some = "; sweep each apart, into one hydra.sweep.dir" if 0 < len(lack) < len(chosen) else ""
    return f"{override}: not with {without}; {group}={', '.join(having[:6])} {have}{some}"


def _within(key: str, group: str) -> bool:
    return key.replace("/", ".").startswith(group.replace("/", ".") + ".")


UNKNOWN = re.compile(r"Could not (?:override|delete|append).*?'([^']*)'")
"""What Hydra says of a key, or group, that there is not."""


def with_key_swept(error: BaseException, given: Sequence[str]) -> list[str] | None:
    """Return a command line that sweeps over a key's only value; None unless that helps.

    Hydra looks for a key of one value among the defaults, whatever options of a group above
    it the sweep names; for one that is swept over it looks in each of these.
    """
    unknown = UNKNOWN.search(str(error))
    key = unknown[1].partition("=")[0] if unknown else ""
    values = dict(one.partition("=")[::2] for one in given)
    swept = [group for group, value in values.items() if "," in value and _within(key, group)]
    if not swept or re.search(r",|^choice\(", values.get(key, ",")):
        return None
    return [f"{key}=choice({values[key]})" if one.startswith(f"{key}=") else one for one in given]


def groups(above: str = "") -> list[str]:
    """Return all groups of options, such as ``policy`` and ``policy/order``."""
    return [each for one in inner_groups(above) for each in (one, *groups(one))]


def refusal(error: BaseException, given: Sequence[str]) -> str:
    """Return in one line what Hydra refuses, with what was probably meant.

    Parameters
    ----------
    error : BaseException
        What Hydra or OmegaConf raised.
    given : sequence of str
        The overrides of the command line.
    """
    first, *_ = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    kind = type(error).__name__
    if (mark := getattr(error, "problem_mark", None)) is not None:  # of YAML
        return f"{mark.name}, line {mark.line + 1}: {first}"
    if kind == "MissingConfigException" and (missing := getattr(error, "missing_cfg_file", None)):
        return _no_such_option(str(missing), getattr(error, "options", None))
    if kind == "OverrideParseException":
        if os.path.isfile(word := getattr(error, "override", "")):  # noqa: PTH113 - any word
            from workloads.logs.formats import guess_format  # most errors need no pandas

            return f"{word}: a log is workload={guess_format(word)} workload.path={word}"
        return f"{word}: cannot be read as KEY=VALUE ({first})"
    if several := re.match(r"Ambiguous value for argument '(.*)'", first):
        return f"{several[1]}: several values make a multirun: moldsim sweep"
    if unknown := UNKNOWN.search(first):
        key = unknown[1].lstrip("+~").partition("=")[0]
        mine = (one for one in given if re.split("[=@]", one.lstrip("+~"))[0] == key)
        return no_such_key(re.sub(r"=choice\((.*)\)$", r"=\1", next(mine, key)), key, given)
    if first.startswith("Error resolving interpolation") and any(o[0] == "~" for o in given):
        return f"{next(o for o in given if o[0] == '~')}: cannot be left out"
    if merged := re.match(r"Error merging override (.*)", first):
        cause = str(error.__cause__ or "it has another type").splitlines()[0]
        return f"{merged[1]}: {cause}"
    if first.startswith("Config group override must be a string"):
        chosen = (one.partition("=") for one in given if not NAME.search(one))
        mine = (f"{group}={name}" for group, _, name in chosen if group in groups())
        return f"{next(mine, 'a group')}: must be the name of an option"
    return first or kind


def _no_such_option(missing: str, known: Sequence[object] | None) -> str:
    """Return the message about an option that a group does not have."""
    group, _, name = missing.rpartition("/")
    names = [str(option) for option in known or []] or [one.name for one in options(group)]
    if not names:
        return f"{group}={name}: there is no such group; {meant(group, groups(), SEE)}"
    hint = meant(name, names, f"there are {', '.join(names)}")
    return f"{group}={name}: there is no such option; {hint}"
