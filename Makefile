# make report   install, run every study, check every claim, write results/report.html
# make test     install and run the test suite
# Also: figures, bench, lint, notebooks, clean.

PYTHON ?= python3
PRESET ?= quick
OUT ?= results
BIN := .venv/bin
STAMP := .venv/installed

# OpenBLAS threads on the small matrices of the tests only wait for each other.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: report test figures bench lint notebooks clean

report: $(STAMP)
	$(BIN)/boundlab report --preset $(PRESET) --out $(OUT)

figures: $(STAMP)
	$(BIN)/boundlab figures --preset $(PRESET) --out $(OUT)

# One worker a core, and a file's tests in one process, so that they share compiled programs. Unit tests
# first, by themselves: tests/conftest.py compiles them faster.
TEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile
UNITS := tests/models tests/theory

test: $(STAMP)
	$(TEST) $(UNITS)
	$(TEST) tests $(addprefix --ignore=,$(UNITS))

bench: $(STAMP)
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

notebooks: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --override-ini=addopts= --nbmake --nbmake-timeout=300 notebooks

# pip runs only when one of these two files is newer than the last installation.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; set PYTHON=/path/to/python"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test,dev]'
	touch $(STAMP)

clean:
	rm -rf .venv build dist *.egg-info
