# Makefile: the commands that people type. The build itself is CMake's; see CMakePresets.json.
JOBS ?= 2
PREFIX ?= /usr/local
BENCH ?=
CONFIGURE ?=
RESUME ?=
SEEDS ?= 10000
SECONDS ?= 60
FUZZ_CXX ?= clang++-16
FUZZ_CC ?= clang-16
export JOBS RESUME

.DEFAULT_GOAL := help
.PHONY: help setup build demo check bench stress fuzz tsan asan audit alone times consumers python docs install clean

help:
	@echo 'make demo       forecast atmospheric CO2 on all cores; numbers, and pictures in build/demo; then four ranks'
	@echo 'make check      build, and run every test'
	@echo 'make build      build; the command is then build/release/bin/tandem'
	@echo 'make setup      install the packages that are missing (make demo and make check do it too)'
	@echo 'make bench      measure Tandem beside its peers; BENCH="--budget 10min" goes to each tandem bench'
	@echo 'make stress     the long random tests, with seeds that no run has used; SEEDS=N of each ($(SEEDS))'
	@echo 'make fuzz       look for inputs that break the readers, SECONDS for each ($(SECONDS)); needs Clang'
	@echo 'make tsan       all tests under the thread sanitizer'
	@echo 'make audit      random flows and traffic, with runtime, comm and dist checking their structures'
	@echo 'make asan       all tests under the address and undefined-behaviour sanitizers'
	@echo 'make alone      read each source and each header alone: does every file include what it uses?'
	@echo 'make times      how long building takes, against its goals, and the slowest files'
	@echo 'make consumers  build programs that use Tandem: installed, as a subproject, shared, with GCC and with Clang'
	@echo 'make python     build the Python package in a clean environment and test it, with its notebook; needs PyPI'
	@echo 'make docs       reference of the API in build/docs/html (Doxygen)'
	@echo 'make install    install to PREFIX ($(PREFIX)): command, libraries, headers, files for CMake and pkg-config'
	@echo 'make clean      remove everything that was built'
	@echo 'JOBS=N          compile and test with N processes ($(JOBS))'
	@echo 'CONFIGURE=...   options for cmake, as -D TANDEM_MPI=OFF'
	@echo 'RESUME=1        with check, asan, tsan: leave out tests that have passed since the last build'

setup:
	@scripts/setup

build:
	cmake --preset release $(CONFIGURE)
	cmake --build --preset release -j $(JOBS)

demo:
	@scripts/demo

check:
	@scripts/setup --opencl --docs
	$(MAKE) --no-print-directory build
	@scripts/check build/release -LE stress

bench:
	@scripts/setup --peers
	$(MAKE) --no-print-directory build
	build/release/bin/tandem bench tasks $(BENCH)
	build/release/bin/tandem bench cholesky $(BENCH)
	build/release/bin/tandem bench wake $(BENCH)
	build/release/bin/tandem bench pingpong $(BENCH)
	build/release/bin/tandem bench clock $(BENCH)
	build/release/bin/tandem bench bcast $(BENCH)

stress: setup
	$(MAKE) --no-print-directory build
	@STRESS_SEEDS=$(SEEDS) scripts/check build/release -L stress

# New inputs stay in build/fuzz/found; one that breaks a reader is named there, too.
fuzz: setup
	cmake -S . -B build/fuzz -G Ninja -D CMAKE_CXX_COMPILER=$(FUZZ_CXX) -D CMAKE_C_COMPILER=$(FUZZ_CC) \
	  -D CMAKE_BUILD_TYPE=RelWithDebInfo -D TANDEM_FUZZERS=ON -D TANDEM_TOOLS=OFF -D TANDEM_EXAMPLES=OFF -D TANDEM_BENCHMARKS=OFF \
	  -D TANDEM_PRECOMPILED_HEADERS=OFF -D TANDEM_UCX=OFF -D TANDEM_MPI=OFF $(CONFIGURE)
	cmake --build build/fuzz --target fuzz -j $(JOBS)
	@scripts/fuzz build/fuzz $(SECONDS)

tsan: sanitized-tsan
asan: sanitized-asan-ubsan

# The thread sanitizer wants addresses that are not random. Its dlopen knows no run path, and UCX's hooks of mmap are in its way.
# Tests ask for more memory than there is.
in-tsan := TSAN_OPTIONS="suppressions=$(CURDIR)/scripts/tsan.supp allocator_may_return_null=1" LD_LIBRARY_PATH="$(CURDIR)/build/tsan/modules" \
  UCX_MEM_EVENTS=n UCX_MEM_MMAP_HOOK_MODE=none setarch -R

# Tests ask for more memory than there is. Open MPI keeps memory until the process ends. The leak check reads thread-local storage at wrong
# addresses beside threads of OpenBLAS, which a library that stands in for cuBLAS starts.
in-asan-ubsan := OPENBLAS_NUM_THREADS=1 ASAN_OPTIONS=allocator_may_return_null=1 LSAN_OPTIONS="suppressions=$(CURDIR)/scripts/lsan.supp:print_suppressions=0" \
  UBSAN_OPTIONS="print_stacktrace=1" LD_LIBRARY_PATH="$(CURDIR)/build/asan-ubsan/modules"

sanitized-%: setup
	cmake --preset $* $(CONFIGURE)
	$(in-$*) cmake --build --preset $* -j $(JOBS)
	@$(in-$*) scripts/check build/$* -LE stress

audit: setup
	cmake --preset release $(CONFIGURE)
	cmake --build --preset release -j $(JOBS) --target $(audited)
	@set -e; for test in $(audited); do echo "$$test"; \
	  TANDEM_AUDIT=1 RANDOM_FLOW_COUNT=$(or $(COUNT),100) build/release/tests/$$test --gtest_brief=1; done
audited := runtime_test comm_engine_test comm_traffic_test dist_flow_test random_flow_test

alone: setup
	cmake --preset release $(CONFIGURE)
	@scripts/alone

times: setup
	@scripts/build_times measure

consumers: setup
	@tests/install/consumers_test.sh

# The tests read traces that programs of the build write.
python: setup
	cmake --preset release $(CONFIGURE)
	cmake --build --preset release -j $(JOBS) --target tandem write_sample_trace write_small_run
	@scripts/python_package build/release

docs:
	@scripts/setup --docs
	@scripts/make_docs

install: setup
	cmake --preset release $(CONFIGURE)
	cmake --build --preset release -j $(JOBS) --target tandem_installed
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build
