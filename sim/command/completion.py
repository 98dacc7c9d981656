"""Completion of ``moldsim`` in bash, zsh and fish: subcommands, groups, keys and their values."""

import re
import sys
from collections.abc import Iterator, Sequence

from sim.command.main import SUBCOMMANDS, TEMPLATES, refuse
from sim.command.topics import topics
from sim.help.pages import CONFIG_FOLDER, Key, groups, meant, options, read_option

LINE = "--line"
"""Asks for the completions of the last word of the line that follows."""
RUNNING = ("run", "sweep", "study")
SCRIPTS = {one.suffix[1:]: one for one in sorted(TEMPLATES.glob("completion.*"))}
"""The script of each shell."""
LISTED = re.compile(r"[\w.]+(?:, [\w.]+)+(?: or [\w.]+)?|[\w.]+ or [\w.]+")


def values(key: Key) -> list[str]:
    """Return the values of a key that its comment lists, or that follow from its default.

    Examples
    --------
    >>> values(Key("estimates", "recorded", "requested times: recorded, exact, tsafrir"))
    ['recorded', 'exact', 'tsafrir']
    >>> values(Key("check", "false", "the engine checks itself"))
    ['false', 'true']
    """
    if key.default in ("true", "false"):
        return [key.default, "true" if key.default == "false" else "false"]
    lists = (re.split(", | or ", one) for one in LISTED.findall(key.comment))
    if other := re.match(r"or ([\w.]+):", key.comment):
        return [key.default, other[1]]
    found = next((one for one in lists if key.default in one), [key.default])
    more = ["null"] if "null" in key.comment and "null" not in found else []
    return [one for one in [*found, *more] if re.fullmatch(r"[\w.-]+", one)]


def keys(chosen: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield every key with its values: groups first, then those of chosen options, or of all."""
    picked = dict(one.split("=", 1) for one in chosen if "=" in one)
    names = {group: options(group) for group in groups()}
    for group, found in names.items():
        yield group, [option.name for option in found]
    yield "baseline", [*(option.name for option in names["policy"]), "null"]
    for key in read_option(CONFIG_FOLDER / "config.yaml").keys:
        if key.name != "baseline":
            yield key.name, values(key)
    for group, found in names.items():
        mine = [one for one in found if one.name == picked.get(group)] or found
        for option in mine if group != "experiment" else []:
            for key in option.keys:
                yield f"{group.replace('/', '.')}.{key.name}", values(key)


def words(line: Sequence[str]) -> list[str]:
    """Return how the last word of a command line may go on; the command itself left out.

    Examples
    --------
    >>> words(["ru"]), words(["run", "policy=con"])
    (['run'], ['policy=conservative'])
    """
    *before, last = line or [""]
    if not before:
        return [name for name in SUBCOMMANDS if name.startswith(last)]
    if before[0] == "help":
        return [name for name in topics() if name.startswith(last)]
    if before[0] not in RUNNING:
        return []
    key, equals, value = last.partition("=")
    if not equals:
        return list(dict.fromkeys(f"{k}=" for k, _ in keys(before) if k.startswith(key)))
    *done, partly = value.split(",")
    head = ",".join([*done, ""])
    known = [one for name, found in keys(before) if name == key for one in found]
    return [f"{key}={head}{one}" for one in dict.fromkeys(known) if one.startswith(partly)]


def main(given: Sequence[str]) -> int:
    """Print the script of a shell, or completions for it; return the exit status."""
    name, *rest = [*given] or ["--help"]
    if name == LINE:
        found = words(re.split(" +", rest[0].lstrip(" ")) if rest else [])
        sys.stdout.write("".join(f"{one}\n" for one in found))
        return 0
    if name in SCRIPTS:
        sys.stdout.write(SCRIPTS[name].read_text(encoding="utf-8"))
        return 0
    if name in ("--help", "-h"):
        sys.stdout.write(
            "usage: moldsim completion bash|zsh|fish\n\n"
            '  bash: eval "$(moldsim completion bash)" in ~/.bashrc\n'
            '  zsh:  eval "$(moldsim completion zsh)" in ~/.zshrc, after compinit\n'
            "  fish: moldsim completion fish > ~/.config/fish/completions/moldsim.fish\n"
        )
        return 0
    hint = meant(name, SCRIPTS, f"there are {', '.join(SCRIPTS)}")
    return refuse(f"completion {name}: there is no such shell; {hint}")
