#!/usr/bin/env bash
# tools/top/command_test.sh: `tandem top` on two running ranks: its view, its JSON, how it finds runs, and how they end.
# Usage: top_command_test.sh PATH_OF_TANDEM
set -uo pipefail

tandem=$1
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
mkdir live
export TANDEM_TRACE_LIVE=$folder/live  # runs of others are not listed

# top STATUS ARGUMENTS...: leaves the streams in the files out and err.
top() {
  local status=$1
  shift
  timeout 60 "$tandem" top "$@" > out 2> err < /dev/null
  local actual=$?
  ((actual == status)) || { fail "tandem top $*: exit $actual instead of $status"; cat out err >&2; }
}
# json_holds EXPRESSION: it holds for `o`, the list of printed objects.
json_holds() {
  python3 -c "import json, sys; o = [json.loads(l) for l in open('out')]; sys.exit(not ($1))" ||
    { fail "not ($1) of:"; head -c 3000 out >&2; cat err >&2; }
}
# start FOLDER REPETITIONS: starts a job of two ranks, with a trace.
start() {
  "$tandem" run -n 2 -x TANDEM_TRACE=all -x TANDEM_TRACE_FOLDER="$folder/$1" -- \
    "$tandem" linalg potrf -n 512 --nb 64 --workers 2 --repetitions "$2" > "$1.out" 2> "$1.err" &
  launcher=$!
  local rank
  for rank in 0 1; do
    until_true 60 test -e "$1/rank-000$rank/tandem/live" || { cat "$1.out" "$1.err" >&2; echo "FAILED: no rank $rank" >&2; exit 1; }
  done
}
processes_of() { sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$1"/rank-*/tandem/rank.json; }

# --- what does not run
top 0
holds out 'no run of this host records a trace: start one with TANDEM_TRACE=all'
top 0 --json
json_holds "o == [{'runs': []}]"
top 2 nowhere
holds err 'nowhere: is neither a folder nor a job or process that runs here with a trace'
mkdir empty
top 2 empty
holds err 'empty: is no trace.* when it starts with a trace'
top 2 empty --interval 1ms
holds err '10ms is the shortest'
top 2 empty --once --count 2

# --- two ranks that run
start run 1000000
works() { timeout 60 "$tandem" top run --once --interval 100ms > out 2> err && grep -qE '^gemm' out; }
until_true 60 works || { fail "no kernel is shown"; cat out err >&2; }
holds out '^tandem, job run-.*, 2 ranks of 2, .* since the start of its trace; the last '
holds out '^tasks: [0-9]+ waiting, [0-9]+ ready, [0-9]+ running; [0-9]+/s submitted, [0-9]+/s ended; [1-9][0-9]* ended so far'
holds out '^gemm +[0-9]+ +[0-9.]+ +[0-9.]+ %$'
for rank in 0 1; do
  holds out "^ +$rank +[0-9]+ +[0-9]+ +[0-9]+ .* [0-9]+/256 +[0-9]+$"
  for worker in 0 1; do holds out "^ +$rank +$worker +[-0-9]+ +([0-9.]+ % +){4}[0-9]+  [a-z?]+"; done
done
top 0 run --json --count 2 --interval 100ms
json_holds "len(o) == 2 and all(i['kind'] == 'interval' and [r['rank'] for r in i['ranks']] == [0, 1] for i in o)"
json_holds "all(len(r['workers']) == 2 and r['state'] == 'running' and r['lacks'] == [] for i in o for r in i['ranks'])"
# Time is divided, and nothing is counted twice.
json_holds "all(abs(sum(w['seconds'].values()) - r['interval_s']) < 1e-6 for i in o for r in i['ranks'] for w in r['workers'])"
json_holds "all(abs(sum(k['seconds'] for k in r['kernels']) - sum(w['seconds']['kernels'] for w in r['workers'])) < 1e-6
                for i in o for r in i['ranks'])"
json_holds "all(b['tasks_so_far']['ended'] - a['tasks_so_far']['ended'] == b['tasks']['ended']
                for a, b in zip(o[0]['ranks'], o[1]['ranks']))"
json_holds "all(sum(w['tasks_ended'] for w in r['workers']) == r['tasks']['ended'] for i in o for r in i['ranks'])"
json_holds "all(r['tracer']['missed_packets'] == 0 and r['resident_bytes'] > 0 for i in o for r in i['ranks'])"
json_holds "sum(r['messages_so_far']['sent'] for r in o[1]['ranks']) > 0"
top 0 run/rank-0001 --json --once --interval 100ms
json_holds "[r['rank'] for r in o[0]['ranks']] == [1]"
top 0
holds out ' +run-[^ ]+ +0 of 2 +tandem +20.*/run$'
top 0 --json
json_holds "[(r['rank'], r['size'], r['folder'][-14:]) for r in o[0]['runs']] ==
            [(0, 2, '/run/rank-0000'), (1, 2, '/run/rank-0001')]"
job=$(python3 -c "import json; print(json.load(open('out'))['runs'][0]['job'])")
process=$(python3 -c "import json; print(json.load(open('out'))['runs'][1]['process'])")
top 0 "$job" --json --once --interval 100ms
json_holds "len(o[0]['ranks']) == 2 and o[0]['job'] == '$job'"
top 0 "$process" --json --once --interval 100ms
json_holds "len(o[0]['ranks']) == 2"
top 2 run-none
holds err 'lists what does$'

# --- a rank that starts later
mkdir -p late/rank-0001
: > late.out
ln -s ../run/rank-0000 late/rank-0000
timeout 60 "$tandem" top late --json --interval 100ms > late.out 2> late.err < /dev/null &
viewer=$!
until_true 30 grep -q '"kind":"interval"' late.out || fail "the view waits for a rank that has not started"
grep -q '"rank":1,' late.out && fail "a rank is shown before it has started"
ln -s "$folder/run/rank-0001/tandem" late/rank-0001/tandem
until_true 30 grep -q '"rank":1,' late.out || fail "a rank that starts later is not shown"
kill "$viewer"
wait "$viewer" 2> /dev/null

# --- a rank is killed
: > top.out
timeout 120 "$tandem" top run --interval 100ms > top.out 2> top.err < /dev/null &
viewer=$!
until_true 90 grep -q '^tasks: ' top.out || fail "the view shows nothing"
kill -9 "$process"
wait "$viewer"
status=$?
((status == 1)) || { fail "top of a killed run ends with $status"; tail -n 20 top.out top.err >&2; }
holds top.out '^rank 1 was killed'
holds top.out '^the run was cut off after '
wait "$launcher" && fail "the run was not killed"
top 2 run
holds err 'the run (was killed|has ended)'

# --- a run that ends by itself: it is stopped until the view has begun
start whole 20
pids=$(processes_of whole)
# shellcheck disable=SC2086  # several
kill -STOP $pids
timeout 100 "$tandem" top whole --json --interval 100ms > out 2> err < /dev/null &
viewer=$!
until_true 90 grep -q interval out || fail "the view shows nothing of a run that is stopped"
# shellcheck disable=SC2086
kill -CONT $pids
wait "$viewer" || { fail "top of a run that ends by itself ends with $?"; cat out err >&2; }
wait "$launcher" || { fail "the run fails"; cat whole.err >&2; }
json_holds "[i['kind'] for i in o[:-1]] == ['interval'] * (len(o) - 1) and o[-1]['kind'] == 'end' and not o[-1]['killed']"
"$tandem" trace check whole --json > check.json || fail "the trace of a run that was watched is wrong"
json_holds "sum(r['tasks']['ended'] for r in o[-1]['ranks']) ==
            next(a for a in json.load(open('check.json'))['accounts'] if a['name'] == 'tasks')['counts']['ended'] > 0"
top 2 whole
holds err 'the run has ended: see tandem trace summary'

((failures == 0)) || exit 1
