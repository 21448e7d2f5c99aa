# Two commands: `make reproduce` and `make test`. Both set up .venv on first use.
PYTHON ?= python3
FIGURE ?= fig1
PROFILE ?= small
BIN := .venv/bin

.PHONY: help setup reproduce test lint notebooks benchmark lock clean

help:
	@echo "make reproduce [FIGURE=fig1] [PROFILE=small|smoke|paper]   compute a figure and print its verdicts"
	@echo "make test                                                  run the whole test suite"
	@echo "make lint                                                  ruff and mypy"
	@echo "make notebooks                                             bring the .ipynb in step with the .py"
	@echo "make benchmark                                             training speed against a plain loop"
	@echo "make lock                                                  renew requirements.lock"

setup: .venv/installed

.venv/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "PYTHON=$(PYTHON) is %d.%d: Python 3.11 or newer is needed" % v[:2])'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

reproduce: .venv/installed
	$(BIN)/monolib run $(FIGURE) --profile $(PROFILE)

test: .venv/installed
	$(BIN)/python -m pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

notebooks: .venv/installed
	$(BIN)/jupytext --to ipynb --update notebooks/*.py

benchmark: .venv/installed
	$(BIN)/python benchmarks/training_step.py

lock:
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --editable ".[test,bench,dask]" "setuptools>=77"
	.venv-lock/bin/python -m pip freeze --all --exclude-editable --exclude pip | sed 's/+cpu$$//' > requirements.lock
	rm -rf .venv-lock

clean:
	rm -rf .venv .venv-lock .cache
