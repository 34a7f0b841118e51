# Makefile: the commands that people type. The build itself is CMake's; see CMakePresets.json.
JOBS ?= 2
PREFIX ?= /usr/local
BENCH ?=
export JOBS

.DEFAULT_GOAL := help
.PHONY: help setup build demo check bench stress tsan asan install clean

help:
	@echo 'make demo       forecast atmospheric CO2 on all cores; numbers, and pictures in build/demo; then four ranks'
	@echo 'make check      build, and run every test'
	@echo 'make build      build; the command is then build/release/bin/tandem'
	@echo 'make setup      install the packages that are missing (make demo and make check do it too)'
	@echo 'make bench      measure Tandem beside its peers; BENCH="--rounds 9" goes to each tandem bench'
	@echo 'make stress     the long random tests, over and over'
	@echo 'make tsan       all tests under the thread sanitizer'
	@echo 'make asan       all tests under the address and undefined-behaviour sanitizers'
	@echo 'make install    install to PREFIX ($(PREFIX)): command, libraries, headers, CMake package'
	@echo 'make clean      remove everything that was built'
	@echo 'JOBS=N          compile and test with N processes ($(JOBS))'

setup:
	@scripts/setup

build:
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

demo: setup
	$(MAKE) --no-print-directory build
	build/release/bin/co2_forecast --data data/co2_weekly.csv --out build/demo
	@echo
	@echo 'The same on several ranks: four processes here, which could be four machines (tandem run --host). Each owns a part of'
	@echo 'the data and runs the tasks that write it; what a task reads from others is sent to it. First a Cholesky'
	@echo 'factorisation, then a stencil, whose blocks exchange their borders in each step. Rank 0 speaks for all.'
	@for job in 'potrf -n 2048 --nb 128' 'stencil -n 2048 --nb 256'; do \
	  echo "tandem run -n 4 tandem linalg $$job --check"; \
	  build/release/bin/tandem run -n 4 build/release/bin/tandem linalg $$job --check || exit 1; \
	done
	@echo 'The residual is the error in units of rounding errors: the results are right up to 30, as LAPACK counts.'

check: setup
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
	@scripts/check build/release -L stress --repeat until-fail:10

tsan: sanitized-tsan
asan: sanitized-asan-ubsan

# The thread sanitizer wants addresses that are not random. Its dlopen knows no run path, and UCX's hooks of mmap are in its way.
in-tsan := TSAN_OPTIONS="suppressions=$(CURDIR)/scripts/tsan.supp" LD_LIBRARY_PATH="$(CURDIR)/build/tsan/modules" \
  UCX_MEM_EVENTS=n UCX_MEM_MMAP_HOOK_MODE=none setarch -R

sanitized-%: setup
	cmake --preset $*
	$(in-$*) cmake --build --preset $* -j $(JOBS)
	@$(in-$*) scripts/check build/$* -LE stress

install:
	$(MAKE) --no-print-directory build
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build
