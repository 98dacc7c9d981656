"""A command that ran under other defaults gets one line, at its first run since."""

TOY = ("workload.jobs=20", "workload.applications=2", "cluster.processors=32", "baseline=null")
NOTE = "note: defaults have changed since this command last ran: predictor.charge false -> true; "


def age(folder):
    """Let the runs below a folder have been composed when calibration was free."""
    for path in folder.rglob(".hydra/config.yaml"):
        text = path.read_text()
        assert "charge: true" in text
        path.write_text(text.replace("charge: true", "charge: false"))
    for path in folder.rglob(".hydra/finished.json"):
        path.unlink()


def test_a_run_in_its_own_folder_says_it_once(command, tmp_path):
    first = command(*TOY, "hydra.run.dir=run")
    assert "note:" not in first.err
    age(tmp_path / "run")
    again = command(*TOY, "hydra.run.dir=run")
    assert again.err.count(NOTE) == 1
    assert "experiment=as_before restores former values" in again.err
    assert "note:" not in command(*TOY, "hydra.run.dir=run").err


def test_a_run_in_a_folder_of_its_date_says_it_once(command, tmp_path):
    command(*TOY)
    age(tmp_path / "outputs")
    for place in list((tmp_path / "outputs").glob("*/*")):
        place.rename(place.with_name("00-00-00"))  # long ago
    assert "note:" not in command(*TOY, "seed=2").err  # another command
    assert command(*TOY).err.count(NOTE) == 1


def test_what_the_command_sets_itself_has_not_changed(command, tmp_path):
    command(*TOY, "hydra.run.dir=run")
    age(tmp_path / "run")
    assert "note:" not in command(*TOY, "predictor.charge=true", "hydra.run.dir=run").err


def test_a_multirun_says_it_once_for_all(command, tmp_path):
    asked = ("-m", *TOY, "seed=1,2", "hydra.sweep.dir=sweep")
    command(*asked)
    age(tmp_path / "sweep")
    assert command(*asked).err.count(NOTE) == 1
    assert "finished already" in command(*asked).out
