#!/usr/bin/env bash
# tools/command_test.sh: the command's interface: exit codes, output of each stream, valid JSON.
# Usage: command_test.sh PATH_OF_TANDEM
set -uo pipefail

tandem=$1
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/command_test_support.sh" || exit 1
# Variables of the caller would show as values; each test sets what it needs.
unset "${!TANDEM_@}" "${!SLURM_@}"

# expect WHAT STATUS PATTERN COMMAND...: the exit code and a pattern in both streams together.
expect() {
  local what=$1 status=$2 pattern=$3
  shift 3
  local output
  output=$("$@" 2>&1)
  local actual=$?
  if ((actual != status)) || ! grep -qE -- "$pattern" <<< "$output"; then
    echo "FAILED: $what: exit $actual (expected $status), pattern '$pattern', output:" >&2
    echo "$output" >&2
    failures=$((failures + 1))
  fi
}

# expect_json WHAT EXPRESSION COMMAND...: standard output is one JSON object for which the Python expression is true.
expect_json() {
  local what=$1 expression=$2
  shift 2
  if ! "$@" 2> /dev/null | python3 -c "import json, sys; o = json.load(sys.stdin); sys.exit(not ($expression))"; then
    echo "FAILED: $what: not ($expression)" >&2
    failures=$((failures + 1))
  fi
}

expect "help" 0 "machine" "$tandem" --help
expect "help of a subcommand" 0 "--json" "$tandem" machine --help
expect "version" 0 "^tandem [0-9]+\.[0-9]+\.[0-9]+ " "$tandem" --version
expect "no subcommand" 2 "subcommand" "$tandem"
expect "no subcommand of trace" 2 "tandem trace needs a subcommand: " "$tandem" trace
expect "a subcommand misspelt" 2 "tandem has no subcommand rn \(did you mean run\?\); see tandem --help" "$tandem" rn -n 2 true
expect "an unknown subcommand" 2 "tandem has no subcommand frobnicate; it has bench, calibrate, config, " "$tandem" frobnicate
expect "a subcommand of trace misspelt" 2 "tandem trace has no subcommand chek \(did you mean check\?\)" "$tandem" trace chek folder
expect "an option misspelt" 2 "--jsn is not an option of tandem machine \(did you mean --json\?\)" "$tandem" machine --jsn
expect "an option behind a positional misspelt" 2 "--tolerence is not an option of tandem linalg \(did you mean --tolerance\?\)" \
  "$tandem" linalg cg --tolerence 3
expect "an argument too many" 2 "tandem machine takes no argument here" "$tandem" machine here
expect "a value that is no number" 2 "tandem linalg: --nb: 'x' is not a whole number from 1 to" "$tandem" linalg potrf --nb x
expect "a value that is too large" 2 "tandem linalg: --nb: '9876543210' is not a whole number from 1 to" \
  "$tandem" linalg potrf --nb 9876543210
expect "a value misspelt" 2 "'potfr' is none of cg, .* \(did you mean potrf\?\)" "$tandem" linalg potfr
expect "a value that is missing" 2 "tandem linalg: --nb needs a value" "$tandem" linalg potrf --nb
expect "a positional that is missing" 2 "tandem trace check: folder is required" "$tandem" trace check
expect "machine" 0 "worker +runs on" "$tandem" machine
HWLOC_SYNTHETIC="numa:2 core:1 pu:1" expect "machine with NUMA nodes as memories" 0 " +1 +core 1 +NUMA node 1" "$tandem" machine --tandem.numa=on
expect_json "machine as JSON" "o['machine']['core_count'] == len(o['machine']['cores']) == len(o['machine']['workers']) > 0" \
  "$tandem" machine --json
expect "machine as a tree" 0 "core 0" "$tandem" machine --tree --tandem.workers=1
expect "machine as a picture" 0 "" "$tandem" machine --svg machine.svg
grep -q '>core 0</text>' machine.svg || fail "machine --svg drew no core"
expect "a picture that cannot be written" 1 "nowhere/machine.svg: cannot be written" "$tandem" machine --svg nowhere/machine.svg
numa=(env HWLOC_SYNTHETIC="numa:2 core:2 pu:1" "$tandem" machine --tandem.numa=on)
expect "memories and links that nobody has measured" 0 "^The links between them are not measured: --links does it now" "${numa[@]}"
expect "links of one memory" 0 "^There are no copies between memories\. Name devices" "$tandem" machine --links --tandem.workers=1
expect "a machine whose programs would not start" 0 "^worker  runs on" "$tandem" machine --tandem.memory=1MiB --tandem.spill=/nonexistent
expect "its links" 2 "/nonexistent" "$tandem" machine --tandem.memory=1MiB --tandem.spill=/nonexistent --links
expect "links are measured" 0 "^at once / alone" "${numa[@]}" --links --save machine.toml
[[ $(grep -cE '^(loaded_gb_s|source = "measured")' machine.toml) == 4 ]] || { fail "machine --save has no links:"; cat machine.toml >&2; }
expect_json "links as JSON" "[(l['from'], l['to'], len(l['sizes'])) for l in o['machine']['links']] == [(0, 1, 7), (1, 0, 7)] and all(
  s['ratio'] > 0 for l in o['machine']['links'] for s in l['sizes']) and o['machine']['memories'][1]['kind'] == 'numa'" "${numa[@]}" --links --json
sed -i '/link.0-1/,/source/ { s/^gb_s.*/gb_s = 123/; s/measured/given/ }; s/^loaded_gb_s.*/loaded_gb_s = 61.5/' machine.toml
expect "links of a file" 0 "^ +0 -> 1 +123 .* 61\.5 +50 % +given" "${numa[@]}" --tandem.machine=machine.toml
expect "a file is saved as it was read" 0 "" "${numa[@]}" --tandem.machine=machine.toml --save again.toml
cmp machine.toml again.toml || fail "machine --save changed a file that it had read"
expect "a file of another machine" 2 \
  "machine.toml describes another machine: it has 1 memory of kind numa, and this program has 0; write a file for" \
  "$tandem" machine --tandem.machine=machine.toml
sed -i 's/^gb_s = 123/gb_s = fast/' machine.toml
expect "a damaged file of a machine" 2 "option machine: machine.toml:[0-9]+: fast is no number" "${numa[@]}" --tandem.machine=machine.toml
expect "no file of a machine" 2 "option machine: cannot read nowhere.toml; .tandem machine --links --save nowhere.toml. writes it" \
  "$tandem" machine --tandem.machine=nowhere.toml
expect "a file of a machine that cannot be written" 1 "nowhere/.*cannot be written" "$tandem" machine --save nowhere/machine.toml
if "$tandem" machine | grep -q '^OpenCL 0'; then
  expect "links of an OpenCL device" 0 "^at once / alone" "$tandem" machine --tandem.opencl=1 --links
fi
expect "transports of the machine" 0 "^transports +shm, (ucx, )?tcp" "$tandem" machine
expect "machine with options" 0 "^ +0  core 0" "$tandem" machine --tandem.workers=1 --tandem.caller=false
expect_json "machine with more workers than cores" "[w['core'] for w in o['machine']['workers']] == [None] * 1000" \
  "$tandem" machine --json --tandem.workers=1000
"$tandem" doctor > doctor.txt
(($? <= 1)) || { echo "FAILED: doctor ends with another code than 0 and 1" >&2; failures=$((failures + 1)); }
grep -q '^wrong' doctor.txt && right=1 || right=0
expect "doctor" "$right" "^right +kernel calls +" "$tandem" doctor
"$tandem" doctor --json > doctor.json  # its status says whether all is right on this machine
expect_json "doctor as JSON" "{'descriptors', 'shared memory', 'binding', 'PMIx', 'leftovers'} <= {f['subject'] for f in o['findings']}" \
  cat doctor.json
mkdir live
echo left > live/tandem-trace.4194303.a
expect "doctor finds leftovers" 1 "^wrong +leftovers +one file of a killed run keeps 5B" "$tandem" doctor --tandem.trace.live="$PWD/live"
"$tandem" doctor --tandem.trace.live="$PWD/live" --clean > cleaned.txt
grep -qE '^right +leftovers +one file removed' cleaned.txt || { echo "FAILED: doctor --clean" >&2; cat cleaned.txt >&2; failures=$((failures + 1)); }
[[ ! -e live/tandem-trace.4194303.a ]] || { echo "FAILED: the leftover is still there" >&2; failures=$((failures + 1)); }
expect "doctor and more ranks than cores" 1 "more ranks than cores" "$tandem" doctor -n 4000
printf '#!/bin/sh\nshift; exec sh -c "$*"\n' > fake_ssh
chmod +x fake_ssh
expect "doctor and a host that answers" "$right" "^right +host alpha +answers in [0-9]+ ms" "$tandem" doctor --host alpha --ssh ./fake_ssh
expect "doctor and a host that does not" 1 "^wrong +host alpha" "$tandem" doctor --host alpha --ssh false
expect "config" 0 "^sched " "$tandem" config
expect_json "config as JSON" "all(p['origin'] == 'default' for p in o['options'])" "$tandem" config --json
expect "an unknown option" 2 "did you mean --tandem.sched\?" "$tandem" --tandem.shed=lws config
expect "an unknown variable" 2 "did you mean TANDEM_SCHED\?" env TANDEM_SHED=lws "$tandem" config
expect "a malformed value" 2 "TANDEM_WORKERS.*accepted" env TANDEM_WORKERS=some "$tandem" config
expect_json "an option of the command line" \
  "[(p['value'], p['origin']) for p in o['options'] if p['name'] == 'workers'] == [(1, 'command line')]" \
  env TANDEM_WORKERS=2 "$tandem" config --tandem.workers=1 --json
echo 'workers = 1' > tandem.toml
expect "an option of the file" 0 "^workers +1 +\(file: tandem.toml:1\)" "$tandem" config
echo 'workers = [1' > tandem.toml
expect "a malformed file" 2 "tandem.toml:1" "$tandem" config

((failures == 0)) || exit 1
