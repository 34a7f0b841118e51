#!/usr/bin/env bash
# tools/simulate/replay_test.sh: `tandem replay` of a real run, and the schedules that it follows.
# Usage: replay_test.sh PATH_OF_TANDEM PATH_OF_SIMULATED_PROGRAM
set -uo pipefail

tandem=$1 program=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
export XDG_CACHE_HOME=$folder/cache
orders() { grep -o 'order [0-9]*: .*' out | sort; }
schedule() { tandem_ends 0 trace export "$1" --format schedule -o "$1.schedule"; }
by_worker() { awk '/^rank/ { rank = $2; next } { print rank, $2, $1 }' "$1" | sort -s -k1,2; }

# --- a run whose order is another one each time
tandem_ends 0 run -n 2 "$program" 3 order --tandem.workers=3 --tandem.sched=lws --tandem.trace=task.started --tandem.trace.folder="$folder/run"
orders > real
(($(wc -l < real) == 2)) || fail "the program has not printed its orders"
grep -q '0 1 2 3 4 5 6 7 8 9 10' real && fail "the real run has the order of submission, which proves nothing"

# --- again, with the program of the trace, and with one that is named
tandem_ends 0 replay run
diff real <(orders) || fail "a replay has another order"
tandem_ends 0 replay "$folder/run" "$program" 3 order --tandem.trace=task,sched --tandem.trace.folder="$folder/again"
diff real <(orders) || fail "a replay with a named program has another order"
schedule run
schedule again
diff <(by_worker run.schedule) <(by_worker again.schedule) || fail "tasks of workers differ"
(($(wc -l < run.schedule) > 60)) || fail "the schedule is short"

# --- a real run can follow it, too
tandem_ends 0 run -n 2 "$program" 3 order --tandem.workers=3 --tandem.sched.recorded="$folder/run.schedule"
diff real <(orders) || fail "a real run that follows it has another order"

# --- up to a task: the process stops, goes on when told, and the run ends
task=$(awk '/^rank 1/ { here = 1; next } here { print int($1 / 1024) }' run.schedule | tail -1)
timeout 120 "$tandem" replay --until "1:$task" run > out 2> err < /dev/null &
until_true 60 grep -q 'stopped before' err || fail "no process stops"
stopped=$(sed -nE 's/^\[1\] stopped before .*gdb -p ([0-9]+).*/\1/p' err | head -1)
has_stopped() { grep -q '^State:.*stopped' "/proc/${stopped:-none}/status" 2> /dev/null; }
until_true 20 has_stopped || fail "the process ${stopped:-?} has not stopped"
kill -CONT "${stopped:-$!}"
wait $! || fail "the replay does not end after it was continued"
diff real <(orders) || fail "a replay that was stopped has another order"

# --- another program, and mistakes
tandem_ends 2 run -n 3 "$program" 3 --tandem.workers=3 --tandem.sched.recorded="$folder/run.schedule"
holds err 'a run of 2 ranks, not of rank [0-2] of 3'
timeout 120 "$tandem" replay run "$program" 1 order > out 2> err < /dev/null && fail "a shorter program follows the schedule"
holds err 'ready tasks? wait for task [0-9]+, which is next in option sched.recorded'
tandem_ends 2 replay
tandem_ends 1 replay nothing
tandem_ends 2 replay --wrong run
mkdir empty
tandem_ends 1 replay empty
((failures == 0))
