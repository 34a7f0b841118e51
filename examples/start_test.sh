#!/usr/bin/env bash
# examples/start_test.sh: what a program says when it starts wrongly. Usage: start_test.sh flag|environment|owners PROGRAM TANDEM
set -euo pipefail

part=$1 program=$2 tandem=$3

# fails_with STATUS TEXT COMMAND...: the command ends with that status, and prints one line to standard error, with TEXT in it.
fails_with() {
  local expected=$1 text=$2 status=0 said
  shift 2
  said=$("$@" 2>&1 > /dev/null) || status=$?
  if [[ $status != "$expected" || $said != *"$text"* || $(wc -l <<< "$said") != 1 ]]; then
    echo "FAILED: '$*' ended with $status instead of $expected, and said: $said" >&2
    exit 1
  fi
}

case $part in
  flag)
    fails_with 2 "--tandem.wrokers is no option of Tandem; did you mean --tandem.workers?" "$program" --tandem.wrokers=2
    fails_with 2 "--tandem.workers: option workers cannot be 'many'" "$program" --tandem.workers=many
    fails_with 2 "there is no scheduling policy 'fastest'" "$program" --tandem.sched=fastest
    fails_with 2 "environment variable TANDEM_SHCED is no option of Tandem" env TANDEM_SHCED=lws "$program"
    ;;
  environment)
    TANDEM_ROOT=/opt/tandem TANDEM_HOME=/opt/tandem TANDEM_DIR=/opt/tandem TANDEM_VERSION=0.1 "$program"
    ;;
  owners)
    said=$("$tandem" run -n 3 "$program" 2>&1 > /dev/null)
    if [[ $(grep -c 'no data has an owner' <<< "$said") != 1 ]]; then
      echo "FAILED: this should be said once: $said" >&2
      exit 1
    fi
    ;;
esac
echo "as expected"
