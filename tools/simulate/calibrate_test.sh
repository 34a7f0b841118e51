#!/usr/bin/env bash
# tools/simulate/calibrate_test.sh: `tandem calibrate`: the platform that it writes, and what a simulation makes of it.
# Usage: calibrate_test.sh PATH_OF_TANDEM PATH_OF_SIMULATED_PROGRAM
set -uo pipefail

tandem=$1 program=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
export XDG_CACHE_HOME=$folder/cache TANDEM_RANKS=alone
own=(linalg potrf -n 480 --nb 60 --repetitions 1)

# --- a platform from linear algebra; messages are not measured, since that takes half a minute
mkdir "$folder/potrf"
tandem_ends 0 machine --save "$folder/potrf/node.toml"
tandem_ends 0 calibrate --save "$folder/potrf" --runs 2 --workers 1 --workers 2 "${own[@]}"
holds out 'submission [1-9][0-9]* ns, a task [1-9][0-9]* ns, a wake-up [0-9.]+ us; a packet [0-9]+ ns, copies [0-9.]+ GB/s; runs differ by [0-9.]+ %'
holds out '^ +1 +[0-9.]+ +[0-9.]+ +[+-][0-9.]+'
holds out '^ +2 +[0-9.]+ +[0-9.]+ +[+-][0-9.]+'
for cores in 1 2; do
  [[ -f $folder/potrf/models/$cores/gemm.toml ]] || fail "no model of gemm with $cores workers"
done
tandem_ends 0 simulate --platform "$folder/potrf/platform.toml" -n 4 --ranks-per-node 2 "${own[@]}"
holds out '^simulated: 4 ranks'
# Nothing of it is in the models of this machine.
[[ ! -e $folder/cache/tandem/models ]] || fail "models of this machine were written"

# --- a program of a user
mkdir "$folder/user"
tandem_ends 0 machine --save "$folder/user/node.toml"
tandem_ends 0 calibrate --save "$folder/user" --runs 1 --workers 1 --json "$program"
python3 -c "import json; r = json.load(open('out'))['results'][0]; assert r['peers']['simulated'] > 0 and r['params']['workers'] == 1, r"

# --- mistakes
tandem_ends 1 calibrate --save "$folder/user" "$program"
holds err 'has models already: choose another folder'
tandem_ends 2 calibrate
holds err 'which program'
tandem_ends 1 calibrate --save "$folder/none" "$folder/no_such_program"
rm -rf "$folder/none"
mkdir -p "$folder/false"
tandem_ends 0 machine --save "$folder/false/node.toml"
tandem_ends 1 calibrate --save "$folder/false" --runs 1 --workers 1 false
