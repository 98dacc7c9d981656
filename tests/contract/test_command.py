"""The command ``moldsim``: subcommands, help, completion, misspellings, parts of one's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.command import completion, main, new, topics
from sim.command.main import SUBCOMMANDS
from sim.composition import compose
from sim.errors import ConfigError
from sim.help.pages import CONFIG_FOLDER, groups, options

pytestmark = pytest.mark.fast

ROOT = Path(__file__).resolve().parents[2]
START = "import sys; sys.argv[0] = 'moldsim'; from sim.command.main import main; sys.exit(main())"


def moldsim(*arguments, folder=None, **more):
    """Run the command in a process of its own, as its script does: not from the folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    return subprocess.run(
        [sys.executable, "-P", "-c", START, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


MISSPELT = {
    "polcy=sa": "policy",
    "predicter=adept": "predictor",
    "worklod=lublin": "workload",
    "clusters=shared": "cluster",
    "moldabilty=none": "moldability",
    "baselin=null": "baseline",
    "sed=2": "seed",
    "replication=3": "replications",
    "overun=kill": "overrun",
    "experimnt=herd": "experiment",
    "policy/ordr=sjf": "policy.order",
    "policy/backfil=easy": "policy.backfill",
    "policy/alocation=sa": "policy.allocation",
    "policy=esy": "easy",
    "policy=conservativ": "conservative",
    "policy=fairshare": "fair_share",
    "policy/order=sjff": "sjf",
    "predictor=adpet": "adept",
    "predictor=consenus": "consensus",
    "predictor=user_estimates": "user_estimate",
    "workload=lubln": "lublin",
    "workload=sact": "sacct",
    "moldability=amdal": "amdahl",
    "cluster=dedicate": "dedicated",
    "given=onlin": "online",
    "workload.job=30": "workload.jobs",
    "workload.laod=0.8": "workload.load",
    "cluster.procesors=64": "cluster.processors",
    "predictor.calibraton=0": "predictor.calibration",
    "policy.backfil.replan=true": "policy.backfill.replan",
    "metrics.warmpu=0.1": "metrics.warmup",
    "sim.chek=true": "sim.check",
}


@pytest.mark.slow
@pytest.mark.parametrize("asked", MISSPELT)
def test_a_misspelling_is_answered_with_what_was_meant(asked):
    with pytest.raises(ConfigError) as error:
        compose([asked])
    said = str(error.value)
    assert "\n" not in said
    first = said.partition("did you mean ")[2].partition("?")[0].split(" or ")[0]
    assert first.replace("/", ".") == MISSPELT[asked], said


def test_at_least_thirty_are_tried():
    assert len(MISSPELT) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["workload.job=30", "policy=esy"])
def test_a_refused_override_is_one_line_and_status_2(asked):
    ended = moldsim("run", asked)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: {asked}: ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "rnu: there is no such subcommand; did you mean run?"),
        (["policy=sa"], "a subcommand comes first; did you mean moldsim run policy=sa?"),
        (["xyzzy"], "there is no such subcommand; moldsim --help lists all"),
        (["help", "polcy"], "help polcy: there is no such topic; did you mean policy?"),
        (["completion", "bsh"], "there is no such shell; did you mean bash?"),
        (["new", "polcy", "mine"], "new polcy: there is no such kind; did you mean policy?"),
        (["new", "order"], "new order: a kind and a name are needed"),
    ],
)
def test_a_misspelt_subcommand_is_one_line_and_status_2(arguments, message, capsys):
    assert main.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said
    assert said.count("\n") == 1


def test_help_lists_the_subcommands(capsys):
    assert main.main(["help", "subcommands"]) == 0
    shown = capsys.readouterr().out
    names = {"run", "sweep", "study", "compare", "plot", "verify", "predict", "new"}
    assert names <= set(SUBCOMMANDS)
    assert all(f"\n  {name} " in f"\n{shown}" for name in SUBCOMMANDS)


@pytest.mark.parametrize("asked", [["--help"], ["help"], ["run", "--help"], ["sweep", "--help"]])
def test_the_first_help_fits_a_terminal(asked, capsys):
    assert main.main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_policies_are_a_table_by_kind(capsys):
    def shown(*words):
        assert topics.main(words) == 0
        rows = capsys.readouterr().out.splitlines()[1:-2]
        return {row.split()[0]: row.split()[1:3] for row in rows if row}

    every = shown("policy")
    for name, kind, reads in (
        ("fcfs", "rigid", "nothing"),
        ("easy", "rigid", "runtimes"),
        ("sa", "moldable", "curves"),
        ("pdpa", "malleable", "measurements"),
    ):
        assert every[name] == [kind, reads]
    assert set(shown("policy", "--rigid")) == {k for k, one in every.items() if one[0] == "rigid"}
    assert len(shown("policy", "--rigid", "--malleable")) < len(every)
    assert topics.main(["policy", "--soft"]) == 2
    assert "there are --moldable" in capsys.readouterr().err


@pytest.mark.parametrize("group", topics.TABLES)
def test_a_table_is_cut_for_a_terminal_alone(group, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert topics.main([group]) == 0
    piped = capsys.readouterr().out
    assert "…" not in piped
    assert all(option.about in piped for option in options(group))
    monkeypatch.setattr(topics.sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(topics.pydoc, "pager", lambda text: topics.sys.stdout.write(text))
    for width, has_rules in (("44", False), ("130", True)):
        monkeypatch.setenv("COLUMNS", width)
        assert topics.main([group]) == 0
        head, *shown = capsys.readouterr().out.splitlines()
        assert head.endswith("rule") == has_rules
        assert max(map(len, shown[:-2])) <= int(width)


def test_every_option_of_a_table_states_its_source():
    for group in topics.TABLES:
        for option in options(group):
            if CONFIG_FOLDER not in option.path.parents:  # of an installed package
                continue
            facts = {"kind": topics.kind(group, option), **option.facts}
            assert {"kind", "source", "page"} <= set(facts), (group, option.name)
            assert facts.get("reads") or group != "policy"
            assert (ROOT / facts["page"]).is_file()


def test_a_preset_says_rule_keys_source_and_page(capsys):
    assert main.main(["help", "policy", "sa_easy"]) == 0
    text = capsys.readouterr().out
    for words in ("kind          moldable", "Cirne & Berman", "docs/guide/policies.md"):
        assert words in text
    assert "policy.allocation.margin=0.1" in text  # its own, not the part's 0.0
    assert "policy.allocation.adopters=1.0" in text
    assert "policy.backfill.reservations" in text


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("policy", "sa_easy"),
        ("predictor", "adept"),
        ("workload", "lublin"),
        ("cluster", "failing"),
        ("workload.estimates", "requested times"),
        ("seed", "every random stream derives from it"),
        ("policy=easy", "policy/backfill"),
        ("sjf", "policy/order=sjf"),
        ("run", "usage: moldsim run"),
        ("keys", "WORKLOAD"),
        ("starts with a prediction", "share of the starts with a prediction"),  # a row of tables
        ("wide_short", "short up to an hour"),  # part of the names of figures
    ],
)
def test_help_has_topics(topic, expected, capsys):
    assert topics.main(topic.split()) == 0
    shown = capsys.readouterr().out
    assert (expected if topic != "policy=easy" else "policy=easy") in shown


def test_help_on_a_key_of_a_subcommand_is_the_help_of_that(capsys):
    with pytest.raises(SystemExit):
        topics.main(["backtest.candidates"])
    assert "backtest.candidates=" in capsys.readouterr().out


def test_arguments_reach_the_modules_behind_subcommands(capsys, tmp_path):
    assert main.main(["verify", str(tmp_path / "nowhere")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 8\n1 0 0 60 4 -1 -1 4 90 -1 1 1 -1 -1 -1 -1 -1 -1\n")
    assert main.main(["describe", str(log)]) == 0
    assert "jobs" in capsys.readouterr().out


def test_the_version_is_that_of_the_checkout_or_the_installation(capsys):
    assert main.main(["--version"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("moldsim 0.")
    if (ROOT / ".git").exists():
        assert "+g" in shown
    assert moldsim("version").stdout == shown
    asked = [sys.executable, "-m", "sim", "--version"]
    assert (
        subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout == shown
    )


@pytest.mark.slow
def test_nothing_in_the_working_folder_takes_a_place(tmp_path):
    for name in ("sim", "predictors", "workloads", "conf", "hydra", "numpy", "hydra_plugins"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken')\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("policy: none\n")
    ended = moldsim(
        *("run", "workload.jobs=5", "policy=easy", "picture=none", "hydra.run.dir=out"),
        folder=tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "out" / "summary.json").is_file()


@pytest.mark.slow
def test_words_go_on_as_subcommands_groups_keys_and_values(capsys):
    assert completion.words(["ver"]) == ["verify", "version"]
    assert completion.words(["run", "polic"])[0] == "policy="
    assert "policy/order=" in completion.words(["run", "policy/o"])
    assert completion.words(["run", "policy=eas"]) == [
        f"policy={name}" for name in ("easy", "easy_fastest", "easy_plus", "easy_sjbf")
    ]
    assert completion.words(["sweep", "policy=sa,eas"])[0] == "policy=sa,easy"
    assert "workload.load=" in completion.words(["run", "workload.l"])
    assert "workload.estimates=exact" in completion.words(["run", "workload.estimates="])
    assert completion.words(["run", "sim.check="]) == ["sim.check=false", "sim.check=true"]
    assert "workload.path=" not in completion.words(["run", "workload=lublin", "workload.p"])
    assert "baseline=null" in completion.words(["run", "baseline=n"])
    assert completion.words(["run", "overrun="]) == ["overrun=extend", "overrun=kill"]
    assert completion.words(["help", "policy/"])
    assert completion.words(["verify", ""]) == []
    assert set(groups()) <= {word[:-1] for word in completion.words(["run", ""])}
    assert completion.main(["--line", "run policy=conserv"]) == 0
    assert capsys.readouterr().out == "policy=conservative\n"
    for shell in completion.SCRIPTS:
        assert completion.main([shell]) == 0
        assert "moldsim completion --line" in capsys.readouterr().out


@pytest.mark.slow
def test_bash_completes(tmp_path):
    program = tmp_path / "moldsim"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -c "{START}" "$@"\n')
    program.chmod(0o755)
    script = tmp_path / "try.sh"
    lines = {"moldsim ru": "run", "moldsim run policy=conserv": "conservative",
             "moldsim sweep policy=sa,conserv": "sa,conservative"}  # fmt: skip
    tries = [
        f'COMP_LINE="{line}"; COMP_POINT=${{#COMP_LINE}}; _moldsim; echo "${{COMPREPLY[@]}}"'
        for line in lines
    ]
    head = f'PATH="{tmp_path}:$PATH"\neval "$(moldsim completion bash)"\n'
    script.write_text(head + "\n".join(tries) + "\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        ["bash", script], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines() == list(lines.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", new.KINDS)
def test_a_new_part_works_as_it_is_written(kind, tmp_path):
    """Its own test runs it, and every later writing of it is refused."""
    package = tmp_path / "mylab"
    package.mkdir()
    (package / "__init__.py").write_text('"""A package of somebody\'s own."""\n')
    ended = moldsim("new", kind, "my_rule", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert 'mylab = "mylab.conf"' in ended.stdout
    assert (package / "my_rule.py").is_file()
    again = moldsim("new", kind, "my_rule", folder=package)
    assert again.returncode == 2
    assert "exists already; nothing was written" in again.stderr
    asked = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    ended = subprocess.run(
        asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-2000:]


def test_new_parts_want_a_package_and_a_name_of_their_own(tmp_path):
    ended = moldsim("new", "order", "mine", folder=tmp_path)
    assert "one package is needed, a folder with __init__.py" in ended.stderr
    (tmp_path / "__init__.py").touch()
    for name, message in (("Mine!", "must be a name"), ("sjf", "there is such an option")):
        ended = moldsim("new", "order", name, folder=tmp_path)
        assert ended.returncode == 2
        assert message in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["__init__.py"]


@pytest.mark.slow
def test_a_run_loads_nothing_that_it_does_not_need(tmp_path):
    """Compiled code must be kept already: compiling needs SciPy."""
    asked = ["run", "policy=fcfs", "predictor=user_estimate", "workload.jobs=5", "picture=none"]
    heavy = (
        "matplotlib",
        "scipy.special",
        "scipy.stats",
        "sim.background.background",
    )
    code = f"{START.rpartition(';')[0]}; main(); print([m for m in {heavy} if m in sys.modules])"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, *asked, "baseline=null", "hydra.run.dir=run"],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_help_knows_presets_of_a_folder_that_is_named(tmp_path, capsys):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy/mine.yaml").write_text(
        "# My own rule\n# kind: moldable | source: ours\n_target_: mine.Rule\n", encoding="utf-8"
    )
    asked = ["help", "--config-dir", str(tmp_path)]
    assert main.main([*asked, "policy", "mine"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("policy=mine: My own rule\n")
    assert "kind          moldable" in told
    assert main.main(asked) == 0
    assert capsys.readouterr().out == main.overview()
    assert main.main(["help", "policy", "mine"]) == 2  # it is forgotten
