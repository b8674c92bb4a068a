# Everything runs in .venv, which the first command creates; PYTHON (3.11 or newer) creates it.
PYTHON ?= python3
BIN := .venv/bin
FUZZ ?= 10000
# How many processes `make oracles` takes; by default one a core.
JOBS ?=

# Tests are compiled once and not by every worker, also where the environment asks for no bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test nightly lint format docs bench fuzz mutate oracles aarch64 clean

demo: .venv/weft
	$(BIN)/python examples/demo.py

test: .venv/dev
	$(BIN)/pytest -n auto

nightly: .venv/dev
	$(BIN)/pytest -n auto -m "nightly or not nightly" --hypothesis-profile nightly $(if $(shell command -v ptxas),--ptxas)
	$(BIN)/python tests/fuzz/campaign.py --kernels $(FUZZ)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright
	$(BIN)/pytest -m pages

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/weft
	$(BIN)/python tools/semantics_docs.py
	$(BIN)/python tools/layout_docs.py
	$(BIN)/python tools/layout_plans_table.py
	$(BIN)/python tools/emulator_docs.py
	$(BIN)/python tools/conformance.py

bench: .venv/weft
	$(BIN)/python benchmarks/bench.py $(ARGS)

fuzz: .venv/dev
	$(BIN)/python tests/fuzz/campaign.py --kernels $(FUZZ) $(ARGS)

# make mutate ARGS='src/weft/transforms/dce.py --tests tests/transforms'
mutate: .venv/dev
	$(BIN)/python tools/mutate.py $(ARGS)

# Installs jax, dali, triton, torch, max and nvrtc, each into an environment of its own under .oracles.
oracles: .venv/dev
	$(BIN)/python tests/oracles/compare.py $(if $(JOBS),--jobs $(JOBS)) $(ARGS)
	$(if $(ARGS),,$(BIN)/python tests/oracles/ports.py)
	$(if $(ARGS),,$(BIN)/python tests/oracles/arrangements.py)
	$(if $(ARGS),,$(BIN)/python tests/oracles/emulator.py)

# Programs, tests and generated kernels on an emulated AArch64 machine, whose packages are put into .aarch64.
aarch64: .venv/dev
	$(BIN)/python tools/aarch64.py $(ARGS)

clean:
	rm -rf .venv .oracles .aarch64 .nox build dist bench-results fuzz-failures .pytest_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -m venv .venv

# Stamps: touched when the installation is newer than pyproject.toml and constraints.txt.
.venv/weft: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing weft into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --editable .
	@touch $@

.venv/dev: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing weft with its test and lint tools into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --editable '.[test,lint]'
	@touch $@ .venv/weft
