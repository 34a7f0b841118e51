#!/usr/bin/env bash
# tools/linalg/ranks_test.sh: `tandem linalg` on several processes: one is killed, different launchers, more processes than cores.
# Usage: linalg_ranks_test.sh killed|traced|transports|mpirun|crowd PATH_OF_TANDEM [PATH_OF_MPIRUN]
set -uo pipefail

part=$1
tandem=$2
mpirun=${3:-mpirun}
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
ranks="0 1 2 3"

# has_worked PID: the process has used a tenth of a second of a core beyond three starts, so it has joined the others.
start_hundredths=
has_worked() {
  local -a stat
  if [[ -z $start_hundredths ]]; then
    local TIMEFORMAT=%U
    start_hundredths=$({ time "$tandem" linalg potrf -n 64 --nb 64 --repetitions 1 --tandem.workers=1 > /dev/null 2>&1; } 2>&1)
    start_hundredths=$((10#${start_hundredths//[^0-9]/} / 10))
  fi
  read -r -a stat < <(sed 's/.*) //' "/proc/$1/stat" 2> /dev/null)
  ((${#stat[@]} > 12 && stat[11] + stat[12] > 10 + 3 * start_hundredths))
}
# has_written FOLDER: the rank's trace has at least a few buffers.
has_written() { (($(du -bs "$1" 2> /dev/null | cut -f1) + 0 > 300000)); }
many_factorisations=(linalg potrf -n 2048 --nb 128 --workers 1 --repetitions 1000)

# Without a launcher that ends them, the other ranks end by themselves and name the dead one.
survivors_know() {
  local transport=$1 rank status pids=()
  TANDEM_MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export TANDEM_MASTER_PORT TANDEM_JOB_SECRET=0123456789abcdef0123456789abcdef WORLD_SIZE=4 MASTER_ADDR=127.0.0.1
  for rank in $ranks; do
    RANK=$rank "$tandem" "${many_factorisations[@]}" --tandem.comm.transports="$transport" > "out.$rank" 2> "err.$rank" &
    pids+=($!)
  done
  for rank in $ranks; do until_true 30 has_worked "${pids[rank]}" || fail "rank $rank over $transport does not work"; done
  sleep 0.3
  kill -9 "${pids[2]}"
  for rank in $ranks; do
    until_true 10 is_gone "${pids[rank]}" || { fail "rank $rank over $transport goes on"; kill -9 "${pids[rank]}"; }
    wait "${pids[rank]}" 2> /dev/null
    status=$?
    if ((rank == 2)); then continue; fi
    ((status == 1)) || fail "rank $rank over $transport ends with $status"
    holds "err.$rank" '^tandem: error: rank 2 died'
    [[ ! -s out.$rank ]] || fail "rank $rank over $transport has a result: $(cat "out.$rank")"
  done
  unset TANDEM_MASTER_PORT TANDEM_JOB_SECRET WORLD_SIZE MASTER_ADDR
}

# Under `tandem run`, the trace of a killed rank is complete up to its death.
traced() {
  # shellcheck disable=SC2016  # for the ranks' shell
  "$tandem" run -n 4 -x TANDEM_TRACE=task,sched,worker,data,comm,broadcast -x TANDEM_TRACE_FOLDER="$folder/run" \
    -x TANDEM_TRACE_WHEN_FULL=wait -- sh -c 'echo $$ > pid.$TANDEM_JOB_RANK; exec "$@"' - "$tandem" "${many_factorisations[@]}" \
    > out 2> err &
  local launcher=$! rank
  for rank in $ranks; do
    until_true 30 test -s "pid.$rank" || fail "rank $rank does not start"
    until_true 30 has_worked "$(cat "pid.$rank")" || fail "rank $rank does not work"
  done
  # Some buffers of rank 2 are full: it has run tasks by then, however slow the machine is.
  until_true 60 has_written run/rank-0002 || fail "rank 2 records nothing"
  [[ -e run/rank-0002/tandem/live ]] || fail "rank 2 has no live buffers while it works"
  local live
  live=$(readlink run/rank-0002/tandem/live)
  kill -9 "$(cat pid.2)"
  until_true 20 is_gone $launcher || fail "tandem run goes on without rank 2"
  wait $launcher
  holds err "^\[2\] tandem run: the trace $folder/run/rank-0002 was not ended by its program: its last [0-9]+ events were gathered$"
  [[ ! -e $live && ! -L run/rank-0002/tandem/live ]] || fail "the live buffers of rank 2 are still there"
  "$tandem" trace info run --json > out 2> err || { fail "the trace cannot be read"; cat err >&2; }
  python3 -c 'import json
o = json.load(open("out"))
dead = o["ranks"][2]
workers = [a for a in dead["actors"] if a["kind"] == "worker"]
assert [r["rank"] for r in o["ranks"]] == [0, 1, 2, 3] and dead["recovered"] and not dead["complete"]
assert dead["lost_events"] == 0 and sum(a["records"] for a in workers) > 100, workers' || fail "rank 2 has left something else"
  "$tandem" trace check run --json > out 2> err || { fail "the trace keeps not what it promises"; cat out err >&2; }
  # All events of rank 2 are there, so its tasks are checked against each other; the running ones have no end.
  python3 -c 'import json
o = json.load(open("out"))
tasks = next(a for a in o["accounts"] if a["name"] == "tasks")
assert not any(2 in s["ranks"] for s in tasks["skipped"]), tasks
assert tasks["counts"]["started"] > 0 and tasks["counts"]["submitted"] >= tasks["counts"]["started"], tasks' || { fail "tasks"; cat out >&2; }
  "$tandem" trace summary run --json > out 2> err || { fail "the run has no summary"; cat err >&2; }
  python3 -c 'import json
o = json.load(open("out"))
assert len(o["workers"]) == 4 and o["seconds"]["executing"] > 0, o["workers"]
assert all(abs(sum(w["seconds"].values()) - o["makespan_s"]) < 1e-9 for w in o["workers"]), o["workers"]
assert 0 < o["bounds"]["area_s"] <= o["makespan_s"] and 0 < o["bounds"]["critical_path_s"] <= o["makespan_s"], o["bounds"]' ||
    { fail "the summary does not add up"; cat out >&2; }
  "$tandem" trace recover run > out 2>&1 || fail "nothing is left to be recovered, and that is an error"
}

killed() {
  survivors_know shm,tcp
  survivors_know tcp
  # Under `tandem run`, the status is that of the killed rank.
  # shellcheck disable=SC2016  # for the ranks' shell
  "$tandem" run -n 4 -- sh -c 'echo $$ > pid.$TANDEM_JOB_RANK; exec "$@"' - "$tandem" "${many_factorisations[@]}" > out 2> err &
  local launcher=$! rank
  for rank in $ranks; do
    until_true 30 test -s "pid.$rank" || fail "rank $rank does not start"
    until_true 30 has_worked "$(cat "pid.$rank")" || fail "rank $rank does not work"
  done
  kill -9 "$(cat pid.2)"
  until_true 10 is_gone $launcher || fail "tandem run goes on without rank 2"
  wait $launcher
  local status=$?
  ((status == 137)) || fail "tandem run ends with $status"
  holds err 'rank 2 was ended by signal 9'
  for rank in $ranks; do is_gone "$(cat "pid.$rank")" || fail "rank $rank is still there"; done
}

complaints() {  # those in the file err, without the one about OpenBLAS's kernels, which some processors deserve
  grep 'tandem: ' err | grep -v 'computes with kernels for'
}

# solves_alike LAUNCHER...: 4 ranks find the solution of one rank, bit by bit, over any transport in $transports (empty:
# any).
solves_alike() {
  local solve=("$tandem" linalg posv -n 300 --nb 32 --nrhs 3 --workers 1 --repetitions 1 --out) transport
  "${solve[@]}" alone.mtx > out || fail "one rank"
  for transport in "${transports[@]}"; do
    rm -f x.mtx
    timeout -k 5 60 "$@" "${solve[@]}" x.mtx ${transport:+"--tandem.comm.transports=$transport"} > out 2> err < /dev/null ||
      fail "$* over $transport: exit $?"
    ! complaints >&2 || fail "$* over $transport: there are complaints"  # MPI may have some of its own
    cmp -s x.mtx alone.mtx || fail "$* over $transport: another solution"
  done
}

transports() {
  local transports=("" shm tcp)
  solves_alike "$tandem" run -n 4
}

mpirun() {
  local transports=("" tcp mpi)
  solves_alike "$mpirun" -n 4
}

crowd() {
  SECONDS=0
  timeout -k 5 100 "$tandem" run -n 64 -- "$tandem" linalg potrf -n 1024 --nb 64 --check --workers 1 --repetitions 1 \
    > out 2> err < /dev/null || fail "64 ranks: exit $?: $(head -5 err)"
  ! complaints > others || fail "there are complaints: $(head -5 others)"
  holds out '^\[0\] potrf '
  (($(wc -l < out) == 2)) || fail "others than rank 0 speak: $(cat out)"
  echo "64 ranks: $SECONDS s"
}

"$part"
((failures == 0))
