"""``moldsim help TOPIC``: a group, option, key, column, figure or subcommand, paged."""

import pydoc
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

from sim.command.main import MORE_HELP, SUBCOMMANDS, carry_out, overview, refuse, subcommands
from sim.errors import ConfigError
from sim.help import pages
from sim.help.meanings import column_names, meanings
from sim.results.durable import answering
from sim.results.rows import REQUEST_SECTION, ROWS

LEAST_RULE = 20
"""Columns of a terminal that a rule needs beside the other facts; else it is left out."""
RUN = """usage: moldsim {name} [KEY=VALUE ...]

{what}
A group's option is swapped by name (policy=easy), its keys follow it
(policy.backfill.replan=true). hydra.{name}.dir=DIR says where results go.

  workload=NAME workload.path=FILE workload.jobs=N workload.load=SHARE
  policy=NAME predictor=NAME baseline=NAME|null
  replications=N seed=N

{more}"""
TABLES = ("policy", "predictor", "workload", "cluster")
"""Groups whose options are shown in a table, with the facts that their files state."""
KINDS = {"reallocation": "malleable", "allocation": "moldable"}
"""Part of a policy that makes jobs so, unless it is one of `PLAIN`."""
PLAIN = ("none", "request")
WHAT = {
    "run": "One simulation, with its baseline.",
    "sweep": "A simulation for each combination: policy=easy,sa seed=1,2.",
}


def topics() -> list[str]:
    """Return what help there is: groups, keys, subcommands and columns."""
    more = ("keys", "subcommands")
    every = (pages.groups(), pages.known_keys(), SUBCOMMANDS, more, column_names())
    return list(dict.fromkeys(word for words in every for word in words))


def text_of(topic: str) -> str | None:
    """Return the help on a group, an option or a key; None where there is none."""
    if topic == "keys":
        return pages.page()
    if topic == "subcommands":
        return subcommands()
    if topic in WHAT:
        return RUN.format(name=topic, what=WHAT[topic], more=MORE_HELP)
    if topic in pages.groups():
        return _lines(pages.group_lines(topic))
    group, _, name = topic.rpartition("=")
    named = (one_of(one, name) for one in pages.groups() if group in ("", one))
    if options_of_a_name := [one for one in named if one is not None]:
        return "\n".join(options_of_a_name)
    found = list(_keys(topic)) or list(meanings(topic))
    if not found and topic not in SUBCOMMANDS:  # which say more in their own help
        found = list(_mentions(topic.replace("_", " ")))
    return _lines(found) if found else None


def kind(group: str, option: pages.Option) -> str:
    """Return whether a policy's jobs are rigid, moldable or malleable; else what the file says."""
    if group != "policy" or "kind" in option.facts:
        return option.facts.get("kind", "")
    parts = pages.default_parts(option.path)
    made = (word for part, word in KINDS.items() if parts.get(part, "none") not in PLAIN)
    return next(made, "rigid")


def table(group: str, kinds: Sequence[str] = ()) -> str:
    """Return a table of a group's options, a line each, those of some kinds alone if asked.

    Raises
    ------
    ConfigError
        If there is no such kind.
    """
    found = [(option, kind(group, option)) for option in pages.options(group)]
    known = list(dict.fromkeys(one for _, one in found))
    for asked in kinds:
        if asked not in known:
            listed = ", ".join(f"--{one}" for one in known)
            raise ConfigError(f"help {group} --{asked}: there is no such kind; there are {listed}")
    facts = ("reads", "source") if group == "policy" else ("source",)
    rows = [(group, "kind", *facts, "rule")]
    for option, own in found:
        if not kinds or own in kinds:
            rows.append((option.name, own, *(option.facts.get(f, "") for f in facts), option.about))
    sizes = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)][:-1]
    width = shutil.get_terminal_size((pages.WIDTH, 24)).columns if sys.stdout.isatty() else None
    if width is not None and width < sum(sizes) + LEAST_RULE:
        rows = [(*row[:-1], "") for row in rows]
    lines = []
    for *cells, about in rows:
        cells_of = zip(cells, sizes, strict=True)
        line = ("".join(f"{cell:<{size}}" for cell, size in cells_of) + about).rstrip()
        lines.append(line if width is None or len(line) <= width else f"{line[: width - 1]}…")
    return "\n".join([*lines, "", f"moldsim help {group} NAME says more about one of them.", ""])


def one_of(group: str, name: str) -> str | None:
    """Return what an option is: rule, kind, source, page, and keys with those of its parts."""
    option = next((one for one in pages.options(group) if one.name == name), None)
    if option is None:
        return None
    parts = pages.default_parts(option.path)
    named = {part.partition("@")[0].strip("/"): own for part, own in parts.items()}
    facts = {"kind": kind(group, option), **option.facts, **named}
    keys = {key.name: key for key in pages.read_option(option.path).keys if key.comment}
    for part, chosen in parts.items():
        inner = next((o.keys for o in pages.options(f"{group}/{part}") if o.name == chosen), ())
        for key in inner:
            if key.default:
                keys.setdefault(f"{part}.{key.name}", key)
    above = group.replace("/", ".")
    shown = [(f"{above}.{key}={one.default}", one.comment) for key, one in keys.items()]
    told = [f"  {fact:<13} {text}\n" for fact, text in facts.items() if text]
    head = f"{group}={name}: {option.about}\n"
    return "\n".join(filter(None, [head, "".join(told), _lines(shown) if shown else ""]))


def _keys(topic: str) -> Iterator[tuple[str, str]]:
    """Yield keys of a name."""
    for label, text in pages.every_line():
        key = label.partition("=")[0]
        if not label.startswith(" ") and text and (key == topic or key.startswith(f"{topic}.")):
            yield label, text


def _mentions(words: str) -> Iterator[tuple[str, str]]:
    """Yield rows of tables, keys, columns and figures in whose name or meaning words stand."""
    rows = (*ROWS, *REQUEST_SECTION)
    labels = [(row.label, text) for row in rows for _, text in meanings(row.key)]
    for label, text in (*labels, *pages.every_line(), *meanings("columns")):
        if words in f"{label} {text}".replace("_", " "):
            yield label.strip(), text


def _lines(found: Iterable[tuple[str, str]]) -> str:
    return "\n".join(pages.columns(*line) for line in found) + "\n"


@answering
def main(given: Sequence[str]) -> int:
    """Show help on a topic; return the exit status."""
    words = pages.words_of("moldsim help", given)
    if not words or words[0] in ("--help", "-h"):
        show(overview())
        return 0
    topic, *rest = words
    if topic in TABLES and all(one.startswith("--") for one in rest):
        text: str | None = table(topic, [one.removeprefix("--") for one in rest])
    else:
        topic = ("=" if topic in pages.groups() else " ").join(words)
        text = text_of(topic)
    verb = topic.partition(".")[0]  # keys of a subcommand stand in its own help
    if text is None and verb in SUBCOMMANDS:
        return carry_out(verb, SUBCOMMANDS[verb], ["--help"])
    if text is None:
        hint = pages.meant(topic, topics(), "moldsim help lists topics")
        return refuse(f"help {topic}: there is no such topic; {hint}")
    show(text)
    return 0


def show(text: str) -> None:
    """Print a text, in the user's pager where it would not fit a terminal."""
    if sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines:
        pydoc.pager(text)
    else:
        sys.stdout.write(text)
