#!/usr/bin/env bash
# tests/install/consume.sh: builds and runs programs that use Tandem, as a user would.
# Usage: consume.sh installed FOLDER PREFIX COMPILER             with find_package and with pkg-config
#        consume.sh subproject FOLDER SOURCE COMPILER [OPTION...]   with add_subdirectory; options for cmake
# FOLDER/consumer and FOLDER/pkg-config are made. With EXAMPLES=FOLDER in the environment, the examples of that folder are built as well.
set -euo pipefail

kind=$1 folder=$2 tandem=$3 compiler=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
cmake=${CMAKE:-cmake}

if [[ $kind == installed ]]; then
  options=("-DCMAKE_PREFIX_PATH=$tandem" "-DEXAMPLES=${EXAMPLES:-}")
else
  options=("-DTANDEM_SOURCE=$tandem")
fi
"$cmake" -G Ninja -S "$here/consumer" -B "$folder/consumer" "${options[@]}" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release "$@"
if [[ $kind == subproject ]] && "$cmake" --build "$folder/consumer" --target help | grep -E '_test|bench|co2|tandem_tools|GTest'; then
  echo "FAILED: a subproject has tests, benchmarks, examples or tools of Tandem's" >&2
  exit 1
fi
"$cmake" --build "$folder/consumer" -j "${JOBS:-2}"
"$folder/consumer/consumer" --tandem.workers=1
"$folder/consumer/comm_consumer" tcp
[[ ! -x $folder/consumer/linalg_consumer ]] || "$folder/consumer/linalg_consumer" --tandem.workers=2

if [[ $kind == installed ]]; then
  libraries=$(find "$tandem" -name tandem.pc -printf '%h')
  mkdir -p "$folder/pkg-config"
  export PKG_CONFIG_PATH=$libraries:${PKG_CONFIG_PATH:-}
  # shellcheck disable=SC2046
  "$compiler" $(pkg-config --cflags tandem) "$here/consumer/consumer.cpp" -o "$folder/pkg-config/consumer" $(pkg-config --libs tandem)
  "$folder/pkg-config/consumer" --tandem.workers=1
  # shellcheck disable=SC2046
  "$compiler" $(pkg-config --cflags tandem) "$here/consumer/consumer.cpp" -o "$folder/pkg-config/static" $(pkg-config --static --libs tandem)
fi
