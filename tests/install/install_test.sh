#!/usr/bin/env bash
# tests/install/install_test.sh: installs a build to a new prefix, then builds and runs a consumer that finds it there.
# Usage: install_test.sh CMAKE BUILD_FOLDER CXX_COMPILER BINDIR
set -euo pipefail

cmake=$1 build=$2 compiler=$3 bindir=$4
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$cmake" --install "$build" --prefix "$folder/prefix" > "$folder/install.log" || { cat "$folder/install.log"; exit 1; }

# Nothing that was installed may point back into the tree that built it: the prefix has to work without it.
if grep -rnF "$build" "$folder/prefix/" --include='*.cmake' --include='*.hpp'; then
  echo "FAILED: an installed file names the build folder" >&2
  exit 1
fi

# Of the headers only those that users include, and what these include.
if [[ ! -f $folder/prefix/include/tandem/tandem.hpp || -e $folder/prefix/include/tandem/runtime/runtime_core.hpp ]]; then
  echo "FAILED: the installed headers are not the public ones" >&2
  exit 1
fi

# The examples include nothing else; `make consumers` compiles them.
while read -r header; do
  if [[ ! -f $folder/prefix/include/$header ]]; then
    echo "FAILED: an example includes $header, which is not installed" >&2
    exit 1
  fi
done < <(sed -n 's/^#include <\(tandem\/[^>]*\)>.*/\1/p' "$here"/../../examples/[0-9]*.cpp "$here"/../../examples/guide/*.cpp | sort -u)

# Programs that `tandem bench` starts are a component of their own.
if [[ -e $folder/prefix/libexec/tandem ]]; then
  echo "FAILED: benchmarks are installed with the libraries" >&2
  exit 1
fi

"$here/consume.sh" installed "$folder" "$folder/prefix" "$compiler"
"$folder/prefix/$bindir/tandem" --version

# UCX and MPI are loaded when they are asked for, and not before.
if ldd "$folder/consumer/consumer" "$folder/consumer/comm_consumer" | grep -E 'libuc|libmpi'; then
  echo "FAILED: a program loads these before it asks for them" >&2
  exit 1
fi
find "$folder/prefix" -name 'libtandem_comm_*.so' > "$folder/modules"
while read -r module; do
  if readelf -d "$module" | grep -E 'R(UN)?PATH' | grep -F "$build"; then
    echo "FAILED: $module looks for libraries in the build folder" >&2
    exit 1
  fi
  # Found in the folder that the package was installed to, wherever that is.
  [[ $module != *_ucx.so ]] || UCX_NET_DEVICES=lo "$folder/consumer/comm_consumer" ucx
done < "$folder/modules"
echo "the installed package works"
