# The commands of this project:
#   make train   train an agent from nothing (preset quick) and say how to play it
#   make test    linter, types, all tests
#   make docs    build the documentation into site/
#   make verify  a million random games and the counts of placements, kernel against reference
#   make minimal tests of the core, then of the extras, with the oldest versions that pyproject.toml allows
#   make coverage  lines and branches of the rules that the tests by clause run
#   make guided  fuzzing guided by coverage (atheris), where that installs
#   make audit   known weaknesses of what is installed (asks the package index)
#   make screenshots  draw the pages of the table in the browser into docs/images
#   make bench   speed beside other environments; writes docs/benchmarks.md
#   make examples  train with each library of examples/ for a minute (`make example-rllib`: with one)
# They create .venv when it is missing, and install again only when pyproject.toml changed. Nothing
# else of the system is changed, unless OXX_INSTALL_BROWSER=1 lets root install Debian's chromium.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed

BENCH  ?= .venv-bench
BROWSER := $(VENV)/browser
DOCS   := $(VENV)/docs
# The tests that need nothing but the core.
MINIMAL := $(patsubst %,tests/test_%.py,jit rules records cards parallel aec single signature hidden \
  notation bots)
# And those of the extras `web`, `render` and `train`.
MINIMAL_EXTRAS := $(patsubst %,tests/test_%.py,web render film vector play training statistics)

EXAMPLES := $(patsubst examples/%.py,example-%,$(wildcard examples/*.py))

# What reads bytes from outside, for fuzzing that is guided by coverage.
DOORS := deck position position_json record checkpoint_folder arena_log tracked_game

.PHONY: bench train test test-fast verify minimal guided coverage audit lint install docs screenshots examples clean

train: $(STAMP)
	$(BIN)/python training/train.py --preset quick

# Each process begins with one half, so that what a module prepares is mostly prepared once; the
# notebooks, each one long test, come first.
test: lint $(BROWSER) $(DOCS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal $(if $(wildcard notebooks/*.ipynb),--nbmake notebooks tests)

test-fast: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

verify: $(STAMP)
	$(BIN)/python -m tests.stress.verify --games 1000000 --workers 2
	$(BIN)/python -m tests.stress.counts

minimal:
	test -x .venv-minimal/bin/python || $(PYTHON) -m venv .venv-minimal
	.venv-minimal/bin/python -m pip install --quiet --disable-pip-version-check \
	  -r tests/stress/minimal.txt
	.venv-minimal/bin/python -m pytest -q -p no:cacheprovider $(MINIMAL)
	.venv-minimal/bin/python -m pip install --quiet --disable-pip-version-check \
	  -r tests/stress/minimal.txt -r tests/stress/minimal-extras.txt
	.venv-minimal/bin/python -m pytest -q -p no:cacheprovider -m "not slow" $(MINIMAL_EXTRAS)

# Kernels as plain Python; the test that is left out asks for 8,000 deals, a minute uncompiled.
coverage: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/test_rules.py -W ignore --cov=oxx_env.game.rules \
	  --cov-branch --cov-report=term-missing --cov-fail-under=95 \
	  --deselect tests/test_rules.py::test_r2_every_deal_is_as_likely_as_another

guided:
	test -x .venv-guided/bin/python || $(PYTHON) -m venv .venv-guided
	.venv-guided/bin/python -m pip install --quiet --disable-pip-version-check -e . atheris hypothesis tyro
	for door in $(DOORS); do .venv-guided/bin/python -m tests.stress.guided --door $$door || exit 1; done

audit: $(STAMP)
	test -x .venv-audit/bin/python || $(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.venv-audit/bin/pip-audit --path $(VENV)/lib/python3.*/site-packages --skip-editable

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The peers live in an environment of their own; one that does not install is named in the result.
bench: $(STAMP)
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BIN)/python benchmarks/peers.py --list | while read peer; do \
	  $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check "$$peer" \
	    || echo "$$peer does not install here"; done
	$(BIN)/python benchmarks/peers.py --peers $(BENCH)/bin/python

# Each library lives in an environment of its own, outside of which the checkout stays; what to
# install is said by the script. With `make -k` the others run after one that fails.
examples: $(EXAMPLES)

example-%: examples/%.py
	test -x .venv-examples/$*/bin/python || $(PYTHON) -m venv .venv-examples/$*
	rm -rf build  # what an earlier version left there would be installed too
	sed -n 's/^    pip install \(.*\) oxx_env .*/\1 ./p' $< | \
	  xargs .venv-examples/$*/bin/python -m pip install --quiet --disable-pip-version-check
	.venv-examples/$*/bin/python $<

install: $(STAMP)

# One command, so that torch's bound holds while stable-baselines3 is resolved.
$(STAMP): pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[train,test,render,web]'
	@touch $@

# For the browser tests, which are skipped where this does not work out, and asked for next time.
$(BROWSER): $(STAMP) tests/install_browser.sh
	sh tests/install_browser.sh $(BIN)/python $@

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# Without it the test of the documentation is skipped.
$(DOCS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]' \
	  || echo 'mkdocs does not install here: its test will be skipped' >&2
	@touch $@

screenshots: $(BROWSER)
	$(BIN)/python docs/images/screens.py

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache build *.egg-info
