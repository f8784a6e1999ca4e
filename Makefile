# make demo   set up everything, build, and train the example on eight devices
# make test   set up everything, build, and run every test
# make help   the other targets
#
# Nothing is done twice: Debian packages, the virtual environment and the CMake configuration each leave a stamp and are
# redone only when the file that lists them changes. DEVICES=8 STEPS=200 OUT=out configure the demo, PREFIX=/usr/local
# and DESTDIR= where `make install` puts things.

SHELL := /bin/bash
JOBS ?= 2
DEVICES ?= 8
STEPS ?= 200
OUT ?= out
PREFIX ?= /usr/local
STAMPS := .stamps
# Looked up when first needed: 'make setup' may only just have installed it. Not the one of .venv, which may be active and
# is about to be made anew.
PYTHON = $(shell PATH="$${PATH//$(CURDIR)\/$(VENV)\/bin:/}"; command -v python3.11 || command -v python3)
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
# For the newest JAX: any Python 3.12 or later, if the machine has one.
NEWEST_PYTHON = $(firstword $(wildcard $(foreach v,13 12,$(HOME)/.pyenv/versions/3.$(v)*/bin/python /usr/bin/python3.$(v))))
# ccache keeps object files valid when the checkout moves, as it does in CI.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

CXX_FOLDERS := $(wildcard gangway examples fuzz tests bench)

.DEFAULT_GOAL := help
.PHONY: help setup build executable demo docs install wheel deb test sanitize bench lint format lock clean check-address check-thread \
  check-lint check-cc check-text check-py check-tidy
.DELETE_ON_ERROR:

help:
	@echo "make demo    set up, build, train examples/train_transformer.py on $(DEVICES) devices; results in $(OUT)/"
	@echo "make test    set up, build, run every test (C++, text, Python) and the linters"
	@echo "make sanitize  the tests of what parses bytes or has threads, under address, undefined and thread sanitizers"
	@echo "make check-tidy  clang-tidy over gangway/ (some minutes)"
	@echo "make setup   Debian packages (packages.txt) and .venv (requirements.lock)"
	@echo "make build   the executable build/gangway and the test programs"
	@echo "make docs    the docs site in build/site"
	@echo "make install   the executable and its Python packages below PREFIX ($(PREFIX)), or DESTDIR and that"
	@echo "make wheel   a wheel with the executable, for pip; make deb: a Debian package; both in build/packages"
	@echo "make bench   the benchmarks, beside native JAX; one JSON line per figure"
	@echo "make lint    ruff and clang-format in check mode; 'make format' applies them"
	@echo "make lock    resolve requirements.txt into requirements.lock"
	@echo "make clean   remove build/, out/, .venv and the stamps"

setup: $(STAMPS)/packages $(STAMPS)/venv

# One package a line; what is missing of them is installed.
$(STAMPS)/packages $(STAMPS)/packages-tests: $(STAMPS)/%: %.txt
	@mkdir -p $(STAMPS)
	@wanted=$$(grep -v '^#' $<); missing=; \
	for p in $$wanted; do \
	  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; \
	done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" != 0 ]; then echo "as root: apt-get install$$missing" >&2; exit 1; fi; \
	  echo "installing$$missing"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    -o Dpkg::Use-Pty=0 $$missing > $(STAMPS)/apt.log || { cat $(STAMPS)/apt.log >&2; exit 1; }; \
	fi
	@touch $@

$(STAMPS)/venv: requirements.lock $(STAMPS)/packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "Python 3.11 is needed; found: $$($(PYTHON) --version)" >&2; exit 1; }
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	@touch $@

# Also stamped where there is no such Python: the tests that need it then skip.
$(STAMPS)/venv-newest: requirements-newest.lock $(STAMPS)/packages
	@rm -rf $(VENV)-newest
	@if [ -n "$(NEWEST_PYTHON)" ]; then echo "$(VENV)-newest with $(NEWEST_PYTHON)"; \
	  $(NEWEST_PYTHON) -m venv $(VENV)-newest && $(VENV)-newest/bin/pip install --quiet --disable-pip-version-check \
	    --no-deps -r requirements-newest.lock; \
	else echo "no Python 3.12 or later: the newest JAX is not tested"; fi
	@touch $@

build/build.ninja: CMakeLists.txt $(wildcard cmake/*.cmake) $(STAMPS)/venv
	cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=g++ \
	  $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache) > $(STAMPS)/cmake.log \
	  || { cat $(STAMPS)/cmake.log >&2; exit 1; }
	@touch $@

build: build/build.ninja
	@ninja -C build -j$(JOBS)

# The demo and the benchmarks need no test program.
executable: build/build.ninja
	@ninja -C build -j$(JOBS) gangway

demo: executable
	build/gangway run --devices $(DEVICES) -- python examples/train_transformer.py --steps $(STEPS) --out $(OUT)

docs: executable
	@mkdocs build --strict --site-dir build/site > $(STAMPS)/docs.log 2>&1 || { cat $(STAMPS)/docs.log >&2; exit 1; }

# DESTDIR is CMake's own.
install: executable
	@cmake --install build --component gangway --prefix $(PREFIX)

wheel: executable $(STAMPS)/wheel-venv
	@rm -rf build/stage
	@cmake --install build --component gangway --prefix build/stage --strip > /dev/null
	@$(STAMPS)/wheel-venv/bin/python deploy/package/wheel.py build/stage build/packages

$(STAMPS)/wheel-venv: deploy/package/requirements.txt $(STAMPS)/packages
	@rm -rf $@ && $(PYTHON) -m venv $@
	@$@/bin/pip install --quiet --disable-pip-version-check --no-deps -r deploy/package/requirements.txt
	@touch $@

deb: executable $(STAMPS)/packages-tests
	@cpack -G DEB --config build/CPackConfig.cmake -B build/packages > $(STAMPS)/deb.log || { cat $(STAMPS)/deb.log >&2; exit 1; }
	@rm -rf build/packages/_CPack_Packages; ls build/packages/*.deb

# Cheap checks first; each kind runs even when an earlier one failed, and any failure fails the target.
test: build $(STAMPS)/packages-tests $(STAMPS)/venv-newest
	@$(MAKE) --no-print-directory -k check-lint check-text check-cc check-py

check-lint: lint

check-cc:
	ctest --test-dir build -j$(JOBS) --output-on-failure

check-text: $(STAMPS)/packages-tests
	@if [ -e tests/lit.cfg.py ]; then lit -j$(JOBS) -q --time-tests tests && echo "text tests passed"; \
	else echo "no text tests"; fi

check-py:
	python -m pytest

# What parses bytes from outside, or computes with what it read; what has threads.
ADDRESS_TESTS := tensor_test mesh_test mesh_proto_test hlo_test bytecode_test stablehlo_test eval_test passes_test partition_test \
  ifrt_proxy_test net_grpc_test files_test
THREAD_TESTS := base_test device_cts_test device_pjrt_test net_inproc_test net_grpc_test net_ucx_test store_test \
  collective_test sched_test controller_test cluster_test ifrt_proxy_test client_test processes_test

# The same tests again, built with address and undefined, then with thread sanitizers. UCX's hooks in the allocator call
# the thread sanitizer from threads that have left it already.
sanitize: check-address check-thread

check-address: SANITIZERS := address,undefined
check-thread: SANITIZERS := thread
# Debian's mold does not wrap symbols the way cmake/tsan_absl.cc needs.
check-thread: export CMAKE_ARGS := -DGANGWAY_MOLD=NO
check-thread: export UCX_MEM_MMAP_HOOK_MODE := none
# Copies megabytes out of gRPC's memory, and the sanitizer looks for a suppression for every word of them.
check-thread: export GTEST_FILTER := -ServerTest.LooksUpWhatIsStored
check-address: TESTS := $(ADDRESS_TESTS)
check-thread: TESTS := $(THREAD_TESTS)
check-address check-thread: $(STAMPS)/venv
	@cmake -S . -B build-$@ -G Ninja -DCMAKE_CXX_COMPILER=g++ -DGANGWAY_SANITIZE=$(SANITIZERS) $$CMAKE_ARGS \
	  $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache) > $(STAMPS)/$@.log \
	  || { cat $(STAMPS)/$@.log >&2; exit 1; }
	@ninja -C build-$@ -j$(JOBS) $(TESTS)
	@export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=suppressions=cmake/tsan.supp:halt_on_error=1:allocator_may_return_null=1; \
	failed=; for test in $(TESTS); do \
	  echo "$@: $$test"; build-$@/$$test --gtest_brief=1 || failed="$$failed $$test"; \
	done; test -z "$$failed" || { echo "$@:$$failed failed" >&2; exit 1; }

# Minutes of every core: not part of 'make test'.
check-tidy: build $(STAMPS)/packages-tests
	@git ls-files 'gangway/*.cc' | grep -v _test.cc | xargs -n 8 -P $(JOBS) \
	  clang-tidy -quiet -extra-arg=-Wno-unknown-warning-option -p build

bench: executable
	python bench/train.py
	python bench/dispatch.py

lint: $(STAMPS)/venv $(STAMPS)/packages-tests
	@ruff check . && ruff format --check --quiet .
	@find $(CXX_FOLDERS) \( -name '*.cc' -o -name '*.h' \) -print0 | xargs -0 -r clang-format --dry-run --Werror

format: $(STAMPS)/venv $(STAMPS)/packages-tests
	@ruff check --fix --quiet . ; ruff format --quiet .
	@find $(CXX_FOLDERS) \( -name '*.cc' -o -name '*.h' \) -print0 | xargs -0 -r clang-format -i

lock: $(STAMPS)/packages
	@rm -rf $(STAMPS)/resolve && $(PYTHON) -m venv $(STAMPS)/resolve
	@$(STAMPS)/resolve/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
	@{ echo "# requirements.txt, resolved for CPython 3.11 on x86-64 Linux. Made by 'make lock'."; \
	   $(STAMPS)/resolve/bin/pip freeze; } > requirements.lock
	@rm -rf $(STAMPS)/resolve

clean:
	rm -rf build build-* out $(VENV) $(VENV)-newest $(STAMPS)
