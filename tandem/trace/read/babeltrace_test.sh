#!/usr/bin/env bash
# tandem/trace/read/babeltrace_test.sh: babeltrace2 and `tandem trace` read equal events and dates in the sample trace.
# Usage: babeltrace_test.sh PATH_OF_TANDEM PATH_OF_WRITE_SAMPLE_TRACE
set -uo pipefail

if ! command -v babeltrace2 > /dev/null; then
  echo "skipped: no babeltrace2"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
"$2" run || exit 1

# The catalogue has no dates: its events are compared by number only.
babeltrace2 --clock-seconds --no-delta --names none --fields loglevel run > theirs 2> err || { cat err >&2; exit 1; }
[[ ! -s err ]] || { cat err >&2; exit 1; }
"$1" trace dump run --json > ours || exit 1

python3 - << 'END'
import json, re, sys

def fail(what):
    sys.exit("FAILED: " + what)

theirs, descriptions = [], 0
for line in open("theirs"):
    seconds, nanoseconds, name = re.match(r"\[(\d+)\.(\d{9})\] (\w+\.\w+): ", line).groups()
    if name.startswith("about."):
        descriptions += 1
    else:
        theirs.append((int(seconds) * 10**9 + int(nanoseconds), name, line))
ours = [json.loads(line) for line in open("ours")]
if len(theirs) != len(ours) or len(ours) == 0:
    fail(f"{len(theirs)} events of babeltrace2, {len(ours)} of ours")
if descriptions != 22:
    fail(f"{descriptions} descriptions")
by_name = lambda events, name_of, date_of: sorted((name_of(e), date_of(e)) for e in events)
a = by_name(theirs, lambda e: e[1], lambda e: e[0])
b = by_name(ours, lambda e: e["event"], lambda e: e["date_ns"])
for (name, date), (our_name, our_date) in zip(a, b):
    # CTF's frequency is a whole number, and its line has no ends.
    if name != our_name or abs(date - our_date) > 50:
        fail(f"{name} at {date} ns, ours {our_name} at {our_date} ns")
texts = "".join(line for _, _, line in theirs)
for expected in ("{ 1, -2, 0, 2, 0, [ 2, 17 ], [ ] }", "{ 2, -2, 0, 2, 1, [ 2, 17 ], [ 1 ] }", "{ 1, -0.25 }", "{ 0, 1, 7, 5, 99, 4096 }"):
    if expected not in texts:
        fail(f"no event has the fields {expected}")
print(f"{len(ours)} events at the same dates, the greatest difference being "
      f"{max(abs(x[1] - y[1]) for x, y in zip(a, b))} ns")
END
