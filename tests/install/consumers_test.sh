#!/usr/bin/env bash
# tests/install/consumers_test.sh: what `make consumers` runs: programs that use Tandem in every way that it offers, with GCC and, where
# there is Clang 16 or newer, with Clang: static and shared libraries, installed; a subproject without linear algebra, UCX and MPI.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
here=$source/tests/install
folder=$source/build/consumers
jobs=${JOBS:-2}
compilers=(g++)
for clang in clang++-19 clang++-18 clang++-17 clang++-16; do
  if command -v "$clang" > /dev/null; then compilers+=("$clang"); break; fi
done
((${#compilers[@]} > 1)) || echo "skipped: no Clang of version 16 or newer (Debian: clang-16)"

run() {
  "$@" > "$folder/log" 2>&1 || { cat "$folder/log"; echo "FAILED: $*" >&2; exit 1; }
}

mkdir -p "$folder"
done=0
for compiler in "${compilers[@]}"; do
  for shared in OFF ON; do
    kind=static; [[ $shared == OFF ]] || kind=shared
    build=$folder/$compiler  # one folder for both, so that all is compiled once
    echo "[$SECONDS s] $compiler: $kind libraries, installed"
    rm -rf "$build-$kind"
    mkdir -p "$build-$kind"
    # The command and the examples are built too, so that everything but the tests has met this compiler.
    run cmake -G Ninja -S "$source" -B "$build" -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER="$compiler" -D BUILD_SHARED_LIBS=$shared \
      -D TANDEM_TESTS=OFF -D TANDEM_BENCHMARKS=OFF
    run cmake --build "$build" -j "$jobs"
    run cmake --install "$build" --prefix "$build-$kind/prefix"
    run env EXAMPLES="$source/examples" "$here/consume.sh" installed "$build-$kind" "$build-$kind/prefix" "$compiler"
    if [[ $shared == ON ]]; then
      library=$(find "$build-$kind/prefix" -name libtandem.so)
      if ! readelf -d "$build-$kind/consumer/consumer" | grep -qF 'libtandem.so.0.1' ||
         nm -DC --defined-only "$library" | grep -E ' [TW] (fmt::|tandem::(comm::internal|dist)::|tandem::runtime::Worker)'; then
        echo "FAILED: libtandem.so has no SONAME, or shows what is not of its API" >&2
        exit 1
      fi
    fi
    done=$((done + 1))
  done
  echo "[$SECONDS s] $compiler: subproject"
  rm -rf "$folder/$compiler-subproject"
  mkdir -p "$folder/$compiler-subproject"
  run "$here/consume.sh" subproject "$folder/$compiler-subproject" "$source" "$compiler" -D TANDEM_LINALG=OFF -D TANDEM_UCX=OFF -D TANDEM_MPI=OFF
  done=$((done + 1))
done
echo "$done passed, 0 failed"
