#!/usr/bin/env bash
# examples/check_output.sh: runs an example and compares the whole of its standard output with an extended regular expression.
# Usage: check_output.sh PROGRAM EXPRESSION [ARGUMENT...]   (\n in the expression is a line end; the last line end is left out)
set -u
program=$1
expected=$(printf '%b' "$2")
shift 2
output=$("$program" "$@")
status=$?
if ((status == 0)) && [[ $output =~ ^($expected)$ ]]; then exit 0; fi
printf 'exit status %d; expected:\n%s\ngot:\n%s\n' "$status" "$expected" "$output"
exit 1
