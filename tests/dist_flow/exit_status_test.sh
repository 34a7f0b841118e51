#!/usr/bin/env bash
# tests/dist_flow/exit_status_test.sh: a failure that a program does not see at its end gives an exit status.
# Usage: exit_status_test.sh PATH_OF_RANK_WITHOUT_WAIT
set -uo pipefail

program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset "${!TANDEM_@}"
export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 TANDEM_JOB_SECRET=0123456789abcdef0123456789abcdef

# ends_with STATUS CASE
ends_with() {
  local expected=$1 rank status pids=() good=0
  TANDEM_MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export TANDEM_MASTER_PORT
  for rank in 0 1; do
    RANK=$rank timeout 100 "$program" "$2" --tandem.workers=1 > "$folder/out.$rank" 2> "$folder/err.$rank" &
    pids+=($!)
  done
  for rank in 0 1; do
    wait "${pids[rank]}"
    status=$?
    ((status == expected)) || { echo "$2: rank $rank ends with $status, not $expected"; good=1; }
    grep -q submitted "$folder/out.$rank" || { echo "$2: the output of rank $rank is lost"; good=1; }
    if ((expected == 0)); then [[ ! -s $folder/err.$rank ]] || good=1
    else grep -q 'ranks go through different flows: .* operation 1' "$folder/err.$rank" || good=1
    fi
    cat "$folder/err.$rank"
  done
  return $good
}

ends_with 0 equal && ends_with 1 differing
