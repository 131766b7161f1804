# Every target makes the environment it needs, from Python >= 3.11 with pip and venv, and makes it once:
# an environment is newer than pyproject.toml and the constraints it was made from (that of the bench also newer
# than this file, which says what is in it), or it is brought up to date.
# Another interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
# Processes that share the tests, whole files each; every one has its own servers, folders and ports.
WORKERS ?= 2
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(PROGRAMS)
BENCH_BIN := .venv-bench/$(PROGRAMS)
RELEASE_BIN := .venv-release/$(PROGRAMS)
# The pip that comes with Python 3.11 knows no dependency groups.
PIP_WITH_GROUPS := pip>=25.1
INSTALL := -m pip install --quiet --disable-pip-version-check --editable

# Run when the stamp is older; the demo needs three packages, the tests everything.
RUN_READY := .venv/.ready-run
DEV_READY := .venv/.ready-dev
BENCH_READY := .venv-bench/.ready
RELEASE_READY := .venv-release/.ready

.PHONY: demo test test-long fuzz test-integrations lint types docs bench accuracy mutants all clean

demo: $(RUN_READY)  ## fit the recorded agent session into a small budget and print the report
	$(BIN)/python examples/demo.py

test: $(DEV_READY)  ## tests and doctests; TESTS="tests/test_units.py -k pinned" for some, WORKERS=0 for a debugger
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(TESTS)

test-long: $(DEV_READY)  ## what takes minutes: the other cases of tests, the fuzz at size, random histories, processes that are killed; TURN=1 for a third
	TURN="$(TURN)" HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "long or hypothesis" $(TESTS)

fuzz: $(DEV_READY)  ## random requests for as long as one likes; FUZZ="--cases 1000000 --base 7" for others than those of CI
	$(BIN)/python -m tests.fuzz $(FUZZ)

test-integrations: $(DEV_READY)  ## adapters, each in an environment of its own, two at a time; ADAPTERS="langchain" for some, ALL=1 for all, LONG=1 with every option
	$(BIN)/python tests/integrations/run.py $(ADAPTERS)

lint: $(DEV_READY)  ## format and lint, changing nothing; `make format` changes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

.PHONY: format
format: $(DEV_READY)  ## format, and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: mypy pyright typed  ## mypy and pyright, both strict, on src/, tests/typing, examples/ and the examples of the documents; -j2 runs them together

.PHONY: mypy pyright typed
mypy: $(DEV_READY)
	$(BIN)/mypy src tests/typing examples

pyright: $(DEV_READY)
	$(BIN)/pyright --pythonpath $(BIN)/python

typed: $(DEV_READY)
	$(BIN)/python -m tests.docs.typed

docs: $(DEV_READY)  ## examples run, links resolve, CLI help is current; the site is built into build/site
	$(BIN)/python -m pytest -m 'long or not long' tests/docs
	$(MAKE) site

.PHONY: site
site: $(DEV_READY)  ## the documents and the reference as pages in build/site; warnings and dead links are errors
	$(BIN)/python -m tests.docs.site

bench: $(BENCH_READY)  ## trimtab against its peers and the floors; the peers live in .venv-bench
	$(BENCH_BIN)/python bench/bench.py $(BENCH)

accuracy: $(BENCH_READY)  ## counts against what providers billed for recorded requests, beside other counters
	$(BENCH_BIN)/python bench/accuracy.py $(ACCURACY)

.PHONY: models release-check
models: $(BENCH_READY)  ## windows, limits and prices of every row against litellm's table and genai-prices'; MODELS="gpt-5.5" for some
	$(BENCH_BIN)/python bench/models.py $(MODELS)

release-check: $(RELEASE_READY)  ## what a release would be: built twice, looked through, installed on each Python that is here
	$(RELEASE_BIN)/python -m tests.release

mutants: $(DEV_READY)  ## one-token mutants of the decision modules; all must die
	$(BIN)/python tests/mutants/run.py

all: test test-long lint types docs

clean:  ## remove the environments and every cache
	rm -rf .venv .venv-bench .venv-release .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

# `venv --clear` is not used: an environment that is there is brought up to date, not made again.
define make_venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "trimtab needs Python 3.11 or newer, and $(PYTHON) is older: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(1)/$(PROGRAMS)/python || $(PYTHON) -m venv $(1)
endef

$(RUN_READY): pyproject.toml constraints.txt
	$(call make_venv,.venv)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python $(INSTALL) '.[exact,cli,text]'
	@touch $@

$(DEV_READY): pyproject.toml constraints.txt
	$(call make_venv,.venv)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(PIP_WITH_GROUPS)'
	PIP_CONSTRAINT=constraints.txt $(BIN)/python $(INSTALL) . --group dev
	@touch $(RUN_READY) $@

$(BENCH_READY): pyproject.toml bench/constraints.txt Makefile
	$(call make_venv,.venv-bench)
	PIP_CONSTRAINT=bench/constraints.txt $(BENCH_BIN)/python $(INSTALL) '.[exact,extractive,mistral,cli,batch]' genai-prices langchain-core litellm openai tiktoken compaction-conformance-kit conpact
	@touch $@

$(RELEASE_READY): pyproject.toml tests/release/constraints.txt
	$(call make_venv,.venv-release)
	$(RELEASE_BIN)/python -m pip install --quiet --disable-pip-version-check '$(PIP_WITH_GROUPS)'
	PIP_CONSTRAINT=tests/release/constraints.txt $(RELEASE_BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	@touch $@
