# Two commands on a fresh machine with Python 3.11 to 3.13 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# pip refuses files of other hashes than those in constraints.txt; --no-require-hashes lets in this folder, which has none.
INSTALL := $(BIN)/python -m pip install --quiet --no-require-hashes --constraint constraints.txt --build-constraint constraints.txt
PROJECT := pyproject.toml constraints.txt pip.txt hatch_build.py static/package-lock.json
PAGES := $(shell find static/src static/*.ts static/*.json -type f 2>/dev/null)

# Without kept bytecode every process compiles the project and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-full explore bench check format constraints clean

demo: $(VENV)/.installed-local static/dist/wrods.js
	$(BIN)/wrods demo $(if $(OUT),--out $(OUT))

test: $(VENV)/.installed-dev static/dist/wrods.js check
	$(ONE_THREAD) $(BIN)/python -m pytest -n 3 --dist loadfile

test-full: $(VENV)/.installed-dev static/dist/wrods.js
	$(ONE_THREAD) $(BIN)/python -m pytest -m full -n 3 --dist loadfile

explore: $(VENV)/.installed-dev
	WRODS_HYPOTHESIS=explore $(ONE_THREAD) $(BIN)/python -m pytest -n 2 $$(grep -rl "from hypothesis" tests --include='test_*.py')

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.installed-dev
	@for program in $(wildcard tests/benchmarks/bench_*.py); do $(ONE_THREAD) $(BIN)/python $$program || exit 1; done

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Writes constraints.txt and pip.txt again; OPTIONS=--upgrade raises versions.
constraints: $(VENV)/.installed-dev
	$(INSTALL) --group constraints
	$(BIN)/python -m tests.write_constraints $(OPTIONS)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else f"Python {v[0]}.{v[1]} found; wrods needs 3.11, 3.12 or 3.13. Try: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-local: $(VENV)/bin/python $(PROJECT)
	@echo "Installing wrods with PyTorch into $(VENV): 0.4 GB to download where a CPU build of PyTorch is found, up to 4 GB where not;"
	@echo "2 to 15 minutes the first time, nothing later. Only package registries are asked."
	$(BIN)/python -m pip install --quiet --requirement pip.txt
	$(INSTALL) --editable '.[local]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python $(PROJECT)
	@echo "Installing wrods with PyTorch and test tools into $(VENV): 0.5 GB to download where a CPU build of PyTorch is found,"
	@echo "up to 4 GB where not; 2 to 15 minutes the first time, nothing later. Only package registries are asked."
	$(BIN)/python -m pip install --quiet --requirement pip.txt
	$(INSTALL) --editable '.[local,dev]'
	@touch $@ $(VENV)/.installed-local

# An installation builds the pages; this builds them again after a change.
static/dist/wrods.js: $(PAGES) | $(VENV)/bin/python
	$(INSTALL) --no-deps --editable .
	@touch $@

clean:
	rm -rf build dist static/dist THIRD_PARTY_NOTICES.md .pytest_cache .mypy_cache .ruff_cache .hypothesis
