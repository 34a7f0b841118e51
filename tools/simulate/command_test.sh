#!/usr/bin/env bash
# tools/simulate/command_test.sh: `tandem simulate` on durations that a run has learnt: times, traces, mistakes.
# Usage: simulate_command_test.sh PATH_OF_TANDEM
set -uo pipefail

tandem=$1
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
export XDG_CACHE_HOME=$folder/cache TANDEM_RANKS=alone
program=(linalg potrf -n 512 --nb 64 --repetitions 1)

# --- without durations
tandem_ends 1 simulate -n 2 "${program[@]}"
holds err 'how long .*potrf.* takes is not known'

# --- the same each time, and faster on more cores
tandem_ends 0 "${program[@]}" --tandem.models=on --tandem.workers=1
tandem_ends 0 simulate -n 2 --cores 2 "${program[@]}"
holds out '^potrf '
holds out '^simulated: 2 ranks of 2 cores each; [0-9.]+ s of virtual time'
seconds() {
  tandem_ends 0 simulate "$@" --json "${program[@]}"
  holds err '^potrf '
  python3 -c "import json; r = json.load(open('out'))['results'][0]; print(r['value'])"
}
once=$(seconds -n 4 --cores 2)
[[ $once == "$(seconds -n 4 --cores 2)" ]] || fail "two equal simulations differ"
python3 -c "import sys; sys.exit(not $(seconds --cores 1) > 1.5 * $(seconds --cores 4))" || fail "four cores are not faster than one"
python3 -c "import sys; sys.exit(not $(seconds -n 4 --bandwidth 0.001) > 2 * $once)" || fail "a slow network changes nothing"

# --- more ranks than this host has cores, and a trace that tools read
tandem_ends 0 simulate -n 40 "${program[@]}"
# Fixed durations, so that what changes do to the run is the same on all hosts.
for kernel in potrf:40 trsm:60 herk:60 gemm:100 generate:10; do
  printf '[kernels.%s.cpu]\nmean = "%sus"\n' "${kernel%:*}" "${kernel#*:}"
done > fixed.toml
tandem_ends 0 simulate -n 3 --cores 2 --platform fixed.toml "${program[@]}" --tandem.trace=all --tandem.trace.folder="$folder/run"
tandem_ends 0 trace check "$folder/run"
tandem_ends 0 trace summary "$folder/run"
holds out 'makespan'
tandem_ends 0 trace summary --json "$folder/run"
json_holds "max(o['bounds']['area_s'], o['bounds']['critical_path_with_messages_s']) <= o['makespan_s']"

# --- devices, kinds of nodes, and settings of the command line
printf '[devices.card]\ncount = 2\n' > cards.toml
for kernel in potrf:4 trsm:6 herk:6 gemm:10; do
  printf '[kernels.%s.cuda]\nmean = "%sus"\n' "${kernel%:*}" "${kernel#*:}"
done >> cards.toml
cat fixed.toml >> cards.toml
printf 'nodes = "1 fixed:3, 9 cards"\n' > mixed.toml
tandem_ends 0 simulate -n 2 --platform ./mixed.toml "${program[@]}"
holds out '^simulated: 1 rank of 3 cores each, 1 rank of 1 core and 2 devices each;'
on_cards() { seconds --platform ./cards.toml "$@"; }
python3 -c "import sys; sys.exit(not 3 * $(on_cards) < $(seconds --platform ./fixed.toml))" || fail "cards are no faster than a core"
python3 -c "import sys; sys.exit(not 2 * $(on_cards) < $(on_cards --set devices.card.bandwidth=0.05))" || fail "slow copies change nothing"
tandem_ends 2 simulate --platform ./cards.toml --set devices.card.count=0 "${program[@]}"
holds err '--set:1: devices.card.count = 0: write a number'
tandem_ends 2 simulate --set remote "${program[@]}"
holds err 'write KEY=VALUE'

# --- priorities of messages leave no fast network idle: many messages of many priorities, each to one rank
emulated=(simulate -n 16 --platform occigen --cores 26 --json linalg potrf --precision s -n 6400 --nb 320 --emulate-kernels 40 --repetitions 1)
emulated_s() {
  tandem_ends 0 "${emulated[@]}" --tandem.broadcast=off "$@"
  python3 -c "import json; print(json.load(open('out'))['results'][0]['value'])"
}
unhurried=$(emulated_s --tandem.comm.port_priorities=false) hurried=$(emulated_s)
python3 -c "import sys; sys.exit(not $hurried < 1.1 * $unhurried)" || fail "priorities make it slower: $hurried s instead of $unhurried"

# --- that run once more, from its trace, which takes as long; and with a change
replayed() {  # makespan / recorded
  tandem_ends 0 simulate --replay "$folder/run" --json "$@"
  python3 -c "import json; d = json.load(open('out'))['results'][0]['details']; print(d['makespan'] / d['recorded'])"
}
python3 -c "import sys; sys.exit(not 0.95 < $(replayed) < 1.05)" || fail "a replay takes another time: $(replayed)"
python3 -c "import sys; sys.exit(not $(replayed --scale kernel=gemm:3) > 1.3)" || fail "a slower kernel changes nothing"
python3 -c "import sys; sys.exit(not $(replayed --bandwidth 0.001) > 2)" || fail "a slower network changes nothing"
python3 -c "import sys; sys.exit(not $(replayed --cores 1) > 1.2)" || fail "fewer cores change nothing"
tandem_ends 0 simulate --replay "$folder/run"
holds out '^recorded: .* on 3 ranks of up to 2 workers: [0-9]+ tasks'
holds out '^replayed: 3 ranks of 2 cores each; '
tandem_ends 2 simulate --replay "$folder/run" --scale kernel=gem:3
holds err 'no kernel gem has run; there are: .*gemm'
tandem_ends 0 simulate --replay "$folder/run" --what-if
holds out '^what if +seconds +change'
holds out '^gemm in half of its time +[0-9.]+ +-[0-9.]+ %'
holds out '^--tandem.sched=eager '
tandem_ends 0 simulate --replay "$folder/run" --what-if --json
python3 - <<'END' || fail "a change does not do what its option does"
import json
rows = {row["params"].get("change", "replay"): row["details"]["makespan"] for row in json.load(open("out"))["results"]}
assert rows["half of the cores"] > 1.2 * rows["replay"], rows
assert rows["gemm in half of its time"] < 0.95 * rows["replay"], rows
assert rows["each task is submitted at once"] < 1.05 * rows["replay"], rows
END
tandem_ends 2 simulate --what-if "${program[@]}"
holds err 'what-if is about the run of a trace'
tandem_ends 2 simulate --replay "$folder/run" -n 4
tandem_ends 1 simulate --replay "$folder/nothing"

# --- a loop until convergence makes all its steps
cg=(linalg cg -n 256 --nb 64 --iterations 7 --repetitions 1)
tandem_ends 0 "${cg[@]}" --tolerance 0 --tandem.models=on --tandem.workers=1
tandem_ends 0 simulate -n 2 "${cg[@]}"
holds out '^cg +d +256 +64 +- +7 '

# --- sizes far from the measured ones are not known
tandem_ends 1 simulate -n 2 linalg potrf -n 2048 --nb 512 --repetitions 1
holds err 'gemm.* takes? is not known for these sizes, nor for those within a factor of four'

# --- kernels that run: values, in the time of the models
tandem_ends 0 "${program[@]}" --check --tandem.models=on --tandem.workers=1
tandem_ends 0 simulate -n 3 --cores 2 --execute "${program[@]}" --check
holds out '^potrf .* 0\.[0-9]+$'
[[ $(seconds -n 4 --cores 2) == "$(seconds -n 4 --cores 2 --execute)" ]] || fail "kernels that run take other times"
tandem_ends 1 simulate --execute=potrf,gem "${program[@]}"
holds err '^.*--execute: no kernel gem has run; there are: '

# --- a grid, which goes on where it stopped
own=(linalg potrf -n '{n}' --nb 64 --repetitions 1)
tandem_ends 0 simulate --sweep 'n=256,512 np=1,4 sched=prio' --csv grid.csv "${own[@]}"
holds out '^ +512 +4 +prio +[0-9.]+ +[0-9.]+ to [0-9.]+'
[[ $(grep -c prio grid.csv) -eq 4 ]] || fail "not four results"
head -n 4 grid.csv >less.csv && mv less.csv grid.csv
tandem_ends 0 simulate --sweep 'n=256,512 np=1,4 sched=prio' --csv grid.csv "${own[@]}"
[[ $(grep -c prio grid.csv) -eq 4 ]] || fail "not four results after an interruption"
holds grid.svg 'circle'
tandem_ends 1 simulate --sweep 'n=256' --csv grid.csv "${own[@]}"
holds err 'results of another sweep'
tandem_ends 2 simulate --sweep 'n' --csv other.csv "${own[@]}"
tandem_ends 1 simulate --sweep 'sched=nothing' --csv other.csv "${program[@]}"
holds err 'at sched=nothing'

# --- mistakes
tandem_ends 2 simulate -n 0 "${program[@]}"
tandem_ends 2 simulate -n 2 linalg nothing
