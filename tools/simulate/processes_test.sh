#!/usr/bin/env bash
# tools/simulate/processes_test.sh: `tandem simulate` of a program that knows nothing of it: times, clocks, ends, mistakes.
# Usage: processes_test.sh PATH_OF_TANDEM PATH_OF_SIMULATED_PROGRAM
set -uo pipefail

tandem=$1 program=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
export XDG_CACHE_HOME=$folder/cache
number() { sed -nE "s/.*$1.*/\1/p" "$2" | head -1; }  # the group of a pattern in a file
holds_python() { python3 -c "import sys; sys.exit(not ($1))" || fail "not so: $1"; }

# --- without durations
tandem_ends 1 simulate -n 2 "$program" 3
holds err 'how long (fill, )?smooth takes is not known'

# --- durations of a real run, of one rank
TANDEM_RANKS=alone "$program" 20 print --tandem.models=on --tandem.workers=1 >/dev/null || fail "the program fails"

# --- more ranks than cores: each step waits for the neighbour's, and time is virtual
tandem_ends 0 simulate -n 12 -- "$program" 50
holds out '^\[0\] 50 steps took 0\.[0-9]+ s'
holds out '^simulated: 12 ranks of 1 core each; [0-9.]+ s of virtual time'
seconds=$(number '50 steps took ([0-9.]+) s' out)
holds_python "0.1 <= $seconds < 1"  # 50 steps of 2 ms, and more beside other tests
tandem_ends 0 simulate -n 12 "$program" 50
[[ $seconds == "$(number '50 steps took ([0-9.]+) s' out)" ]] || fail "two equal simulations differ"
tandem_ends 0 simulate -n 12 --latency 5000 "$program" 50
holds_python "$(number '50 steps took ([0-9.]+) s' out) > $seconds + 0.2"

# --- kernels that run compute what a real run does
tandem_ends 0 run -n 3 "$program" 20 print
mv out real
tandem_ends 0 simulate -n 3 --execute "$program" 20 print
diff <(grep 'block' real | sort) <(grep 'block' out | sort) || fail "a simulation that computes has other results"
holds out '^\[2\] block 2: 1\.[0-9]+'

# --- what the program computes itself takes no time, or its processor time
tandem_ends 0 simulate "$program" 1 compute
holds_python "$(number '1 steps took ([0-9.]+) s' out) < 0.1"
tandem_ends 0 simulate --host-speed 0.5 "$program" 1 compute
holds_python "0.5 <= $(number '1 steps took ([0-9.]+) s' out) < 5"
tandem_ends 2 simulate --host-speed 2 linalg potrf
holds err 'own code of linalg is not measured'

# --- sleeps take virtual time, and cost none
SECONDS=0
tandem_ends 0 simulate "$program" 1 sleep
holds out '^slept 7200 s'
holds out '; 7200\.[0-9]+ s of virtual time'
((SECONDS < 60)) || fail "a sleep was real"

# --- a loop that waits for a date ends
tandem_ends 0 simulate -n 2 "$program" 1 spin
holds out 'spun until 0.0000 s'

# --- platforms, an interval, and what if
printf 'name = "mine"\ncores = 3\nlatency = "5ms"\n[kernels.smooth.cpu]\nmean = "40ms"\n' > mine.toml
tandem_ends 0 simulate -n 4 --platform mine.toml "$program" 5
holds out '^simulated: 4 ranks of 3 cores each of mine; 0\.[2-9]'
tandem_ends 0 simulate -n 4 --platform henri --runs 5 "$program" 5
holds out '36 cores each of henri; [0-9.]+ s of virtual time .median of 5; 90 % of runs: [0-9.]+ to [0-9.]+ s'
(($(grep -c 'steps took' out) == 1)) || fail "each simulation prints"
tandem_ends 0 simulate -n 4 --platform mine.toml --scale kernel=smooth:3 --json "$program" 5
json_holds "o['results'][0]['details']['makespan'] > 0.6"
tandem_ends 1 simulate --scale kernel=smoth:3 "$program" 5
holds err 'no kernel smoth has run; there are: fill, smooth'
tandem_ends 2 simulate --scale smooth:3 "$program" 5
tandem_ends 2 simulate --platform nowhere "$program" 5
holds err 'no platform nowhere; installed are bora, chetemi'
printf 'latency = 5\n' > mine.toml
tandem_ends 2 simulate --platform mine.toml "$program" 5
holds err 'mine.toml:1: latency = 5: write a time'

# --- one object; what the program prints goes to standard error
tandem_ends 0 simulate -n 2 --json "$program" 5
holds err '5 steps took'
python3 -c "import json; assert 0.01 < json.load(open('out'))['results'][0]['value'] < 1" || fail "no result in JSON"

# --- a trace that tools read
tandem_ends 0 simulate -n 3 --cores 2 "$program" 5 --tandem.trace=all --tandem.trace.folder="$folder/run"
tandem_ends 0 trace check "$folder/run"
tandem_ends 0 trace summary "$folder/run"
holds out 'makespan'
holds out '^note: the run was simulated'

# --- ends of programs
tandem_ends 5 simulate -n 3 "$program" 2 exit
tandem_ends 134 simulate -n 3 "$program" 2 throw
holds err "the program's own mistake"
holds err 'simulate: that was at 0\.[0-9]+ s of virtual time'
tandem_ends 134 simulate -n 3 "$program" 2 wait
holds err 'simulate: at [0-9.]+ s nothing can go on'
holds err '\[[0-2]\] .*receive'  # the first rank that ends, ends the others

# --- mistakes
tandem_ends 127 simulate -n 2 ./nothing
tandem_ends 1 simulate -n 2 /bin/true
holds err 'no rank has made a tandem::Runtime'
tandem_ends 2 simulate -n 2
tandem_ends 2 simulate --wrong 2 "$program"
holds err 'wrong'
tandem_ends 2 simulate --as-rank-of nothing /bin/true
TANDEM_SIMULATION_TURNS=77 "$program" 1 >out 2>err && fail "a wrong descriptor is taken"
holds err 'cannot reach its simulation'
TANDEM_SIMULATION_TURNS=x "$program" 1 >out 2>err && fail "a wrong descriptor is taken"
holds err 'names no descriptor'
((failures == 0))
