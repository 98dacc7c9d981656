"""``moldsim help TOPIC``: a group, option, key, column, figure or subcommand, paged."""

import pydoc
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

from sim.command.main import BAD_STATUS, SUBCOMMANDS, carry_out, overview, there_are
from sim.help.meanings import column_names, meanings
from sim.help.misspellings import groups, known_keys, meant
from sim.help.pages import (
    CONFIG_FOLDER,
    columns,
    group_lines,
    inner_groups,
    key_lines,
    options,
    page,
    read_option,
)

RUN = """usage: moldsim {name} [KEY=VALUE ...]

{what} A group's option is swapped by name (policy=easy), its keys follow it
(policy.backfill.replan=true). hydra.{folder}.dir=DIR says where artefacts go.

topics of moldsim help: {topics},
a key such as workload.load, or all (every key; the page of python -m sim --help)
"""
WHAT = {
    "run": ("One simulation, with its baseline.", "run"),
    "sweep": ("A simulation for each combination: policy=easy,sa seed=1,2.", "sweep"),
}


def topics() -> list[str]:
    """Return what help there is: groups, keys, subcommands and columns."""
    return [*dict.fromkeys([*groups(), *known_keys(), *there_are(), "all", *column_names()])]


def text_of(topic: str) -> str | None:
    """Return the help on a group, an option or a key; None where there is none."""
    if topic == "all":
        return page()
    if topic in WHAT:
        what, folder = WHAT[topic]
        return RUN.format(name=topic, what=what, folder=folder, topics=", ".join(inner_groups("")))
    name = topic.partition("=")[0]
    if name in groups() and "=" not in topic:
        return _lines(group_lines(name))
    found = list(_options(topic)) or list(_keys(topic)) or list(meanings(topic))
    return _lines(found) if found else None


def _options(topic: str) -> Iterator[tuple[str, str]]:
    """Yield options of a name, ``GROUP=NAME`` or NAME alone, with their keys."""
    group, _, name = topic.rpartition("=")
    for one in groups():
        for option in options(one):
            if option.name == name and group in ("", one):
                yield f"{one}={option.name}", option.about
                yield from key_lines(one.replace("/", ".") + ".", [option])


def _keys(topic: str) -> Iterator[tuple[str, str]]:
    """Yield keys of a name."""
    closed = key_lines("", [read_option(CONFIG_FOLDER / "config.yaml")])
    every = [*closed, *(line for one in inner_groups("") for line in group_lines(one))]
    for label, text in every:
        key = label.partition("=")[0]
        if not label.startswith(" ") and text and (key == topic or key.startswith(f"{topic}.")):
            yield label, text


def _lines(found: Iterable[tuple[str, str]]) -> str:
    return "\n".join(columns(*line) for line in found) + "\n"


def main(given: Sequence[str]) -> int:
    """Show help on a topic; return the exit status."""
    if not given or given[0] in ("--help", "-h"):
        show(overview())
        return 0
    topic = given[0]
    text = text_of(topic)
    if text is None and topic in there_are():
        return carry_out(topic, SUBCOMMANDS[topic], ["--help"])
    if text is None:
        hint = meant(topic, topics(), "moldsim help lists topics")
        sys.stderr.write(f"error: help {topic}: there is no such topic; {hint}\n")
        return BAD_STATUS
    show(text)
    return 0


def show(text: str) -> None:
    """Print a text, in the user's pager where it would not fit a terminal."""
    if sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines:
        pydoc.pager(text)
    else:
        sys.stdout.write(text)
