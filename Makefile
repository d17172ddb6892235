# On a bare Debian 12 machine: `make book` builds and shows the book, `make test` tests everything. Nothing else is typed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help book demo html serve test environment browser lint types house javascript pytest clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell sha256sum requirements.txt | cut -c1-16)
PORT ?= 8000
WORKERS ?= logical

help:  ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

book: environment demo html  ## environment, live demonstration, built book and its address
	@echo
	@echo "The book: file://$(CURDIR)/_build/html/index.html"
	@echo "Over HTTP: make serve, then http://127.0.0.1:$(PORT)/"

demo: environment  ## the two-stream loop on the best device present (five seconds)
	@$(BIN)/python -m refimpl demo

html: environment  ## the book into _build/html; every warning is an error
	@# --all: a page that is not read again would not repeat its warning, and the second build would pass.
	@PYTHONPATH=. $(BIN)/jupyter-book build . --all --quiet --warningiserror --nitpick --keep-going

serve: environment  ## serve the built book on 127.0.0.1
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

test: environment browser lint types house javascript html pytest  ## everything, the browser's tests included

environment: $(STAMP)  ## .venv with what requirements.txt pins (PYTHON=… chooses the interpreter)

$(STAMP): requirements.txt
	@.ci/environment $(VENV) $(PYTHON)
	@rm -f $(VENV)/.installed-* && touch $@

browser:  ## find Chromium, or install it with apt-get
	@.ci/chromium

lint: environment  ## ruff; actionlint and zizmor on the workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet . || { echo "run $(BIN)/ruff format . and commit" >&2; exit 1; }
	@# Without the linters that actionlint would look for on the machine, and without a look into the network: the same everywhere.
	$(BIN)/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml
	$(BIN)/zizmor --offline --pedantic --no-progress --quiet .github

types: environment  ## mypy --strict on refimpl and on the scripts of the workflows
	$(BIN)/mypy
	$(BIN)/mypy .github/scripts/*.py

house: environment  ## which room may import which
	$(BIN)/lint-imports

javascript:  ## the timeline's own tests, in Node
	@files=$$(find refimpl tests -name '*.test.mjs'); \
	test -n "$$files" || { echo "no *.test.mjs under refimpl/ or tests/: the timeline is untested" >&2; exit 1; }; \
	node --test $$files

pytest: environment
	@# By file, so that what the tests of a file share is made once; in the order of their names, which puts the slow builds of
	@# books first. WORKERS=0 runs all of them in one process.
	@$(BIN)/python -m pytest -m "not gpu" -n $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder

clean:  ## remove what make made
	rm -rf $(VENV) _build build *.egg-info
