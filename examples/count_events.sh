#!/usr/bin/env bash
# examples/count_events.sh: records an example, checks the trace, and counts the events of the program. Usage: count_events.sh TANDEM EXAMPLE
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
TANDEM_TRACE=all TANDEM_TRACE_FOLDER=$folder/run "$2" > /dev/null
"$1" trace check "$folder/run" > /dev/null
"$1" trace dump "$folder/run" --type user > "$folder/events"
count() { grep -cE "$1" "$folder/events" || true; }
printf '%s spans of kernels, %s of the submitter, %s counters, %s mark, %s residuals, the last %s\n' "$(count 'worker [0-9]+ +user\.span')" \
  "$(count 'submitter +user\.span')" "$(count 'user\.counter')" "$(count 'user\.mark')" \
  "$(count 'worker [0-9]+ +solver\.residual')" "$(sed -n 's/.*solver.residual iteration=3 norm=//p' "$folder/events")"
