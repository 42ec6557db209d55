# Every command sets up what it needs: a machine with Python (3.11 or newer), make and git is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
N_TESTERS ?= 3
export UV_COMPILE_BYTECODE = 1
unexport PYTHONDONTWRITEBYTECODE  # container images set it; the tests start a hundred processes, each would compile all of Salon
export DO_NOT_TRACK = 1
export PREFECT_SERVER_ANALYTICS_ENABLED = false
export GX_ANALYTICS_ENABLED = false

.PHONY: help install demo test test-slow check format lock prices simulate serve torture fuzz clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

install: $(VENV)/.dev  ## set up everything, development tools included

demo: $(VENV)/.run  ## draw, judge and publish the demo benchmark; no key, no server
	@$(BIN)/salon demo

test: $(VENV)/.dev  ## run the tests but those of whole runs, nights, servers, browsers, crashes and simulations, in three processes (on two idle cores some six minutes)
	@$(BIN)/python -m pytest -n $(N_TESTERS) --dist loadscope --no-loadscope-reorder -m "not slow"

test-slow: $(VENV)/.dev  ## run the others (some twenty minutes); a change is done when both pass
	@$(BIN)/python -m pytest -n $(N_TESTERS) --dist loadscope --no-loadscope-reorder -m slow

check: $(VENV)/.dev  ## style, types, import contracts, rubrics
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/salon rubrics lint

simulate: $(VENV)/.run  ## count how often the published figures are right: draws from a known world, the demo repainted (minutes)
	$(BIN)/python -m benchmarks.simulations.statistics
	$(BIN)/python -m benchmarks.simulations.totals
	$(BIN)/python -m benchmarks.simulations.few_prompts
	$(BIN)/python -m benchmarks.simulations.few_labels
	$(BIN)/python -m benchmarks.simulations.few_meetings
	$(BIN)/python -m benchmarks.simulations.demo
	$(BIN)/python -m benchmarks.simulations.nights --families 1500
	$(BIN)/python -m benchmarks.simulations.agreement
	$(BIN)/python -m benchmarks.simulations.corrected
	$(BIN)/python -m benchmarks.simulations.jury
	$(BIN)/python -m benchmarks.simulations.looks
	$(BIN)/python -m benchmarks.simulations.exam

serve: $(VENV)/.run  ## Prefect's UI on this machine, the demo's nightly and backfill deployed; Ctrl-C ends it
	@$(BIN)/salon serve

fuzz: $(VENV)/.dev  ## mutate input for every reader, SECONDS (10) of CPU each: no fault, within time and memory
	$(BIN)/python -m tests.fuzz.campaign --seconds $(or $(SECONDS),10)

torture: $(VENV)/.dev  ## crash the pipeline hundreds of times, fail every call in turn, fill the disk (hours)
	SALON_TORTURE=1 $(BIN)/python -m pytest tests/torture/test_prefect_gone.py tests/judge/test_storm.py
	SALON_TORTURE=1 $(BIN)/python -m pytest tests/flows/runs/test_resuming.py -k two_nights
	SALON_TORTURE=1 $(BIN)/python -m pytest tests/flows/runs/test_gone.py tests/flows/runs/test_runners.py -k "flow_is_killed or workers_killed"
	SALON_TORTURE=1 $(BIN)/python -m pytest tests/torture/test_fortnight.py tests/simulation/test_claims_model.py
	$(BIN)/python -m benchmarks.simulations.protocol --seeds 20000
	$(BIN)/python tests/torture/many_hosts.py
	$(BIN)/python tests/torture/power_loss.py
	$(BIN)/python tests/torture/power_loss.py --first
	$(BIN)/python tests/torture/campaign.py

format: $(VENV)/.dev  ## put the code in its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

prices: $(VENV)/.dev  ## write the judges' price data anew, for people to review the diff
	@$(BIN)/python -m tests.support.price_data

lock: $(VENV)/bin/uv  ## compile the pinned requirements again
	$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 --custom-compile-command "make lock" pyproject.toml --group build -o requirements/run.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 --custom-compile-command "make lock" pyproject.toml --group dev -c requirements/run.txt -o requirements/dev.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 --custom-compile-command "make lock" pyproject.toml --extra dask -c requirements/run.txt -o requirements/dask.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 --custom-compile-command "make lock" pyproject.toml --extra otel -c requirements/run.txt -o requirements/otel.txt
	$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --universal --python-version 3.11 --custom-compile-command "make lock" --group tool -o requirements/tool.txt

clean:  ## remove the virtual environment and salon-demo/; a lake and serve/ stay: paid replies, Prefect's deployments
	rm -rf $(VENV) salon-demo

$(VENV)/bin/uv: requirements/tool.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Salon needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 " + "demo")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the installer (pinned, with hashes) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/tool.txt
	@touch $@

$(VENV)/.run: $(VENV)/bin/uv requirements/run.txt pyproject.toml
	@echo "Installing Salon and its libraries (pinned, with hashes; about a minute) ..."
	@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/run.txt
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@echo "Installing the development tools (pinned, with hashes) ..."
	@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@touch $@
