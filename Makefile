# Short names for the plain commands of the README; every target sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test test-extra lint bench clean

.venv/installed: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	touch $@

run: .venv/installed
	$(BIN)/python -m sim

test: .venv/installed
	$(BIN)/python -m pytest

# The same tests with everything that they would skip: real logs and measurements
# in the folder that MOLDSIM_DATA names.
test-extra: .venv/installed
	@test -d "$(MOLDSIM_DATA)" || { echo "set MOLDSIM_DATA to a folder with traces/ and scaling/"; exit 2; }
	$(BIN)/python -m pytest -ra

lint: .venv/installed
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

bench: .venv/installed
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
