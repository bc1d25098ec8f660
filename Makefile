# The front of the repository: each target is one thing to do, and gets what it
# needs first. The build itself is CMake's (CMakePresets.json).

JOBS ?= 2
FUZZ_SECONDS ?= 60
BENCH ?= # arguments of bench/run.py: lists, --threads N, ... (--help)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help deps dev-deps neon-deps build install demo test neon asan tsan \
        fuzz valgrind models-valgrind models-asan bench bench-peers bench-library format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' \
	  Makefile

deps: ## install the Debian packages that the build and tests need
	@scripts/install-deps.sh

dev-deps: ## the same for sanitizers, fuzzing, valgrind and formatting
	@scripts/install-deps.sh --dev

build: deps ## build the library and the command (build/release)
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target polyphase_command

install: deps ## install library, headers and command (PREFIX=/usr/local)
	cmake --preset release \
	  -DCMAKE_INSTALL_PREFIX=$(abspath $(or $(PREFIX),/usr/local))
	cmake --build build/release -j $(JOBS) --target polyphase_command
	cmake --install build/release

demo: build ## double a picture with the embedded net; show what was gained
	scripts/demo.sh build/release

neon-deps: deps
	@scripts/install-deps.sh --neon || echo "going on without" >&2

test: neon-deps ## build with warnings as errors and pass all tests (build/dev)
	cmake --preset dev -DPOLYPHASE_WERROR=ON
	cmake --build build/dev -j $(JOBS)
	ctest --test-dir build/dev --output-on-failure -j $(JOBS)

neon: neon-deps ## the kernels' and operators' tests for AArch64, emulated
	scripts/neon.sh build/neon

asan: deps ## all tests under the address and undefined-behaviour sanitizers
	cmake --preset asan
	cmake --build build/asan -j $(JOBS)
	ctest --test-dir build/asan --output-on-failure -j $(JOBS)

# Debian's libpthreadpool and libxnnpack are not instrumented: what happens
# inside them is left out (tests/meta/tsan.supp).
tsan: deps ## all tests under the thread sanitizer
	cmake --preset tsan
	cmake --build build/tsan -j $(JOBS)
	TSAN_OPTIONS=suppressions=$(CURDIR)/tests/meta/tsan.supp \
	  ctest --test-dir build/tsan --output-on-failure -j $(JOBS)

fuzz: dev-deps ## run every fuzz target for FUZZ_SECONDS (clang)
	cmake --preset fuzz
	cmake --build build/fuzz -j $(JOBS)
	scripts/fuzz.sh build/fuzz $(FUZZ_SECONDS)

valgrind: dev-deps ## all test programs under valgrind
	cmake --preset dev
	cmake --build build/dev -j $(JOBS)
	cd build/dev/tests && for program in test_*; do \
	  [ -f "$$program" ] && [ -x "$$program" ] || continue; \
	  echo "$$program"; \
	  valgrind -q --leak-check=full --error-exitcode=9 "./$$program" \
	    || exit 1; \
	done

models-valgrind: dev-deps ## every real model under valgrind (long)
	cmake --preset dev
	cmake --build build/dev -j $(JOBS)
	scripts/check-models.sh build/dev/tools/polyphase ../shared/models \
	  valgrind -q --leak-check=full --error-exitcode=9

models-asan: deps ## every real model under the sanitizers (long)
	cmake --preset asan
	cmake --build build/asan -j $(JOBS)
	scripts/check-models.sh build/asan/tools/polyphase ../shared/models

bench: bench-library ## time operators beside XNNPACK and oneDNN (BENCH=...)
	bench/run.py $(BENCH)

bench-peers: bench-library ## the same beside the engines of PyPI as well
	bench/run.py --peers $(BENCH)

bench-library: build
	scripts/install-deps.sh --bench || echo "going on without" >&2
	cmake --build build/release -j $(JOBS) --target polyphase_contest

format: dev-deps ## lay out all C sources
	clang-format -i $$(find src include tools tests fuzz bench \
	  -name '*.[ch]')

clean: ## remove what was built
	rm -rf build out
