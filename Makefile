# Short names for the plain commands of the README; every target sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test test-extra soak results docs lint bench clean

.venv/runs: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-compile --no-deps --editable .
	touch $@

.venv/installed: requirements-dev.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-compile --no-deps --editable .
	touch $@

run: .venv/runs
	$(BIN)/python -m sim

test: .venv/installed
	$(BIN)/python -m pytest

# Everything that the plain tests leave out: real logs (MOLDSIM_DATA names their folder), wrong
# variants of the source, a browser, Slurm, evalys, documentation; skipped with a message where it cannot be installed.
test-extra: .venv/installed
	scripts/test_extra.sh

# Random trials of what must never end in a traceback, a hang or a wrong byte: an hour at most.
soak: .venv/installed
	$(BIN)/python -m tests.soak --report docs/results/soak.json

# All studies behind docs/results, and the tables of the pages: six hours at most; QUICK=1 at toy size, in ten
# minutes, elsewhere. Started again, it goes on. MOLDSIM_DATA names the folder of logs and measured curves.
results: .venv/installed
	$(BIN)/python -m benchmarks.results $(if $(QUICK),--quick)

docs: .venv/installed
	$(BIN)/python -m pip install --quiet '.[docs]'
	$(BIN)/python -m mkdocs build

lint: .venv/installed
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

bench: .venv/installed
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
