#!/usr/bin/env bash
# tests/energy/energy_command_test.sh: a factorisation beside counters that a loop moves: statistics, models, traces, and what doctor and machine say.
# Usage: energy_command_test.sh PATH_OF_TANDEM PATH_OF_FAKE_NVML
set -uo pipefail

tandem=$1
nvml=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../../tools/command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
export XDG_CACHE_HOME=$folder/cache TANDEM_RANKS=alone TANDEM_ENERGY_POWERCAP=$folder/powercap TANDEM_ENERGY_NVML=$folder/no-such-library.so

# --- no counters: all works, and doctor and machine say why
tandem_ends 0 linalg potrf -n 256 --nb 64 --tandem.stats=on
grep -q '^energy' err && fail "statistics have an energy that nobody counts"
"$tandem" doctor > out
holds out '^advice +energy +this machine shows no RAPL counters: there is no .*/powercap/intel-rapl:0; programs run without it'
holds out '^ +-> .*modprobe intel_rapl_msr'
tandem_ends 0 machine
holds out '^energy +this machine shows no RAPL counters'
tandem_ends 0 machine --json
json_holds "o['machine']['energy'][0]['usable'] == False"
TANDEM_ENERGY_NVML=$nvml "$tandem" doctor > out
holds out '^right +energy, nvidia 0 +counted by the device'
holds out '^advice +energy, nvidia 1 +nvidia 1 does not count its energy \(Not Supported\)'

# --- counters that move: 100 W
mkdir -p powercap/intel-rapl:0
echo package-0 > powercap/intel-rapl:0/name
echo 262143328850 > powercap/intel-rapl:0/max_energy_range_uj
printf '%020d\n' 0 > powercap/intel-rapl:0/energy_uj
# By the time that has passed, and without cutting the file.
(
  begin=${EPOCHREALTIME/./}
  while sleep 0.003; do printf '%020d\n' $(((${EPOCHREALTIME/./} - begin) * 100)) 1<> powercap/intel-rapl:0/energy_uj; done
) &
mover=$!
trap 'status=$?; kill $mover 2> /dev/null; end_test' EXIT

"$tandem" doctor > out
holds out '^right +energy +counters of package-0$'
tandem_ends 0 linalg potrf -n 1536 --nb 64 --repetitions 8 --tandem.energy.every=10ms --tandem.stats=on \
  --tandem.models=on --tandem.trace=all --tandem.trace.folder=run
holds err '^energy, measured +workers +joules'
holds err '^gemm +cpu +[0-9.]+ +[0-9.]+ %'
holds err '^\(idle\) +cpu'
holds err '^package-0 +[0-9.]+$'
tandem_ends 0 models list
holds out '^power +watts'
holds out '^gemm +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +cpu$'
tandem_ends 0 models list --json
json_holds "{'gemm', 'potrf', 'trsm'} <= {k['codelet'] for k in o['powers']['kernels']} and o['powers']['idle'][0]['worker'] == 'cpu'"
tandem_ends 0 trace summary run
holds out '^energy +on +joules +share'
holds out '^rank 0, package-0 +[0-9.]+ +[0-9.]+$'
tandem_ends 0 trace summary run --json
json_holds "70 < sum(c['joules'] for c in o['energy']['counters']) / max(c['seconds'] for c in o['energy']['counters']) < 130"
json_holds "abs(sum(k['joules'] for k in o['energy']['kernels']) + sum(k['idle_joules'] for k in o['energy']['kinds']) - o['energy']['joules']) < 0.2 * o['energy']['joules']"
tandem_ends 0 trace check run
tandem_ends 0 trace report run -o run.html
holds run.html '"energy"'

# --- a schedule by energy where all workers are alike
tandem_ends 0 linalg potrf -n 256 --nb 64 --tandem.objective=energy
holds err 'option objective=energy changes nothing: all workers are alike'
tandem_ends 2 linalg potrf -n 256 --nb 64 --tandem.objective=money
holds err 'objective'

if ((failures > 0)); then
  echo "$failures checks failed" >&2
  exit 1
fi
echo "all checks passed"
