#!/usr/bin/env bash
# tools/output_test.sh: output that cannot be written: each subcommand names the file and the cause, and ends with
# status 1.
# Usage: output_test.sh PATH_OF_TANDEM PATH_OF_WRITE_SAMPLE_TRACE
set -uo pipefail

tandem=$1
write_sample=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/command_test_support.sh" || exit 1
unset "${!TANDEM_@}" "${!SLURM_@}" "${!LSB_@}" PBS_NODEFILE OAR_NODEFILE
export XDG_CACHE_HOME=$folder/cache TANDEM_RANKS=alone
[[ -w /dev/full ]] || { echo "skipped: no /dev/full"; exit 0; }

"$write_sample" sample || fail "no sample"
"$tandem" linalg potrf -n 128 --nb 64 --tandem.models=on > /dev/null || fail "no models"

# Each line is a command that prints something, and ends with 0 when it can. "fresh": its folder is made anew before it
# runs.
table='--help
--version
bench --help
config
config --json
contention --help
doctor
doctor --json
linalg potrf -n 64 --nb 64 --repetitions 1
linalg potrf -n 64 --nb 64 --repetitions 1 --json
machine
machine --json
machine --tree
models list
models list --json
models show potrf
run -n 2 --dry-run
run -n 2 echo text
run -n 2 --no-label echo text
run --help
top
trace archive sample -o archived
trace check sample
trace check sample --json
trace dump sample
trace dump sample --json
trace export sample -o fresh --format perfetto
trace info sample
trace info sample --json
trace recover sample
trace report sample -o fresh
trace stats sample
trace summary sample
trace summary sample --json'

# lost STATUS CAUSE COMMAND: the command ended with that status instead of 0, and names the cause.
lost() {
  (($1 == 1)) || fail "$3: exit $1 instead of 1 when it cannot write: $2"
  grep -qE -- "standard output.* cannot be written: $2" err || fail "$3 does not say '$2' but: $(head -c 500 err)"
}

while read -r line; do
  read -ra words <<< "$line"
  rm -rf fresh fresh.*
  timeout 120 "$tandem" "${words[@]}" > expected 2> err < /dev/null
  usual=$?
  [[ -s expected ]] || { fail "tandem $line prints nothing (exit $usual): $(head -c 500 err)"; continue; }
  # The doctor ends with 1 where something is wrong with the host.
  ((usual == 0)) || [[ $line == doctor* ]] || { fail "tandem $line: exit $usual: $(head -c 500 err)"; continue; }

  rm -rf fresh fresh.* archived*
  timeout 120 "$tandem" "${words[@]}" > /dev/full 2> err < /dev/null
  lost $? 'No space left on device' "$line"
  grep -qF "(/dev/full)" err || fail "$line does not name the file: $(head -c 500 err)"
  rm -rf fresh fresh.* archived*
  timeout 120 "$tandem" "${words[@]}" >&- 2> err < /dev/null
  lost $? 'Bad file descriptor' "$line"
  grep -qF "standard output (closed)" err || fail "$line does not say that its output is closed: $(head -c 500 err)"

  # A closed standard error changes neither the output nor the status.
  for errors in /dev/full closed; do
    rm -rf fresh fresh.* archived*
    if [[ $errors == closed ]]; then timeout 120 "$tandem" "${words[@]}" > out 2>&- < /dev/null
    else timeout 120 "$tandem" "${words[@]}" > out 2> $errors < /dev/null; fi
    status=$?
    # The doctor measures the host, whose load changes between two calls.
    ((status == usual)) || { [[ $line == doctor* ]] && ((status <= 1)); } || fail "tandem $line with standard error $errors: exit $status instead of $usual"
    [[ -s out ]] || fail "tandem $line with standard error $errors prints nothing"
  done
done <<< "$table"

# No file that a command opens takes the number of a closed stream, and gets its output.
"$tandem" trace export sample -o fresh --format perfetto > /dev/null || fail "no export"
cp fresh whole 2> /dev/null || cp -r fresh whole
rm -rf fresh
"$tandem" trace export sample -o fresh --format perfetto <&- >&- 2>&-
diff -rq fresh whole > diff.out || fail "with closed streams the export is another one: $(cat diff.out)"

# Files that options name, on a full disk.
ln -s /dev/full full.json
for line in "trace export sample -o full.json --format perfetto" "machine --svg full.json"; do
  read -ra words <<< "$line"
  tandem_ends 1 "${words[@]}"
  holds err 'full\.json.*No space left on device'
done

# A full disk does not end ranks: their output is lost, and they run to their end.
program writes 'i=0; while [ $i -lt 2000 ]; do echo "$i some text that fills the pipe and the queue of the launcher"; i=$((i + 1)); done
echo to the other >&2; touch "done-$TANDEM_JOB_RANK"'
for streams in '> /dev/full 2> err' '>&- 2> err' '> out 2> /dev/full' '> out 2>&-' '> /dev/full 2>&1' '>&- 2>&-'; do
  rm -f done-*
  eval "timeout 60 \"\$tandem\" run -n 2 ./writes $streams < /dev/null"
  status=$?
  ((status == 1)) || fail "tandem run $streams: exit $status instead of 1"
  [[ -f done-0 && -f done-1 ]] || fail "tandem run $streams: a rank did not come to its end"
done
# The status is that of the failing rank, not that of the output.
timeout 60 "$tandem" run -n 2 sh -c 'echo text; exit 7' > /dev/full 2> err < /dev/null
status=$?
((status == 7)) || fail "a rank's status is hidden by a full disk: $status"

# Reports of a runtime at its end.
for errors in '2> /dev/full' '2>&-'; do
  eval "timeout 60 \"\$tandem\" linalg potrf -n 64 --nb 64 --repetitions 1 --tandem.stats=on > out $errors < /dev/null"
  status=$?
  ((status == 1)) || fail "statistics $errors: exit $status instead of 1"
  holds out '^potrf '
done
tandem_ends 0 linalg potrf -n 64 --nb 64 --repetitions 1 --tandem.stats=on
holds err 'tasks'
tandem_ends 1 linalg potrf -n 64 --nb 64 --repetitions 1 --tandem.graphviz=/dev/full
holds err "cannot write the graph to '/dev/full': No space left on device"

exit $((failures > 0))
