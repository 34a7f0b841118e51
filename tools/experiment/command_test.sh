#!/usr/bin/env bash
# tools/experiment/command_test.sh: `tandem experiment`: all experiments, very small; results that are kept; what changes the sentence; wrong files.
# Usage: command_test.sh PATH_OF_TANDEM PATH_OF_SOURCES
set -uo pipefail

tandem=$1 sources=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
export XDG_CACHE_HOME=$folder/cache
python3 -c 'import tomllib, matplotlib, numpy' 2> /dev/null || { echo "skipped: no Python from 3.11 on with matplotlib"; exit 0; }

# --- all of them run
tandem_ends 0 experiment --list
names=$(cut -d' ' -f1 out)
(($(wc -l < out) == $(find "$sources/experiments" -name experiment.toml | wc -l))) || fail "--list lacks some"
tandem_ends 0 experiment --all --smoke --archive all.tar.gz
for name in $names; do
  holds experiment-results/index.html "<h2 id='$name'>"
  [[ -s experiment-results/$name/smoke.svg ]] || fail "$name has no picture"
  tar -tzf all.tar.gz | grep -q "^$name/definition/experiment.toml" || fail "$name is not in the archive"
done
holds experiment-results/index.html '<svg'
tar -tzf all.tar.gz | grep -q '^platforms/.*\.toml' || fail "the archive lacks platforms"

# --- results are kept, and a published number changes the sentence without another run
mkdir mine
cp -r "$sources/experiments/qr-broadcasts" mine/again
tandem_ends 0 experiment again --from mine --smoke --folder kept
holds out '^[0-9]+ of [0-9]+ comparisons agree'
lines=$(wc -l < kept/again/points.jsonl)
grep 'comparisons agree' out > before
sed -i 's/^published = 7$/published = 0.001/' mine/again/experiment.toml
tandem_ends 0 experiment again --from mine --smoke --folder kept
grep 'comparisons agree' out > after
cmp -s before after && fail "another published number gives the same sentence"
(($(wc -l < kept/again/points.jsonl) == lines)) || fail "points were run again"

# --- interrupted in the middle of a line: that point alone runs again
truncate -s -5 kept/again/points.jsonl
tandem_ends 0 experiment again --from mine --smoke --folder kept --json
json_holds 'len(o["experiments"][0]["points"]) == '"$lines"' and o["experiments"][0]["missing"] == ""'
(($(wc -l < kept/again/points.jsonl) == lines + 1)) || fail "not one point was run again"

# --- the results are those of the command
words=$(python3 -c 'import json; print(" ".join(json.loads(open("kept/again/points.jsonl").readline())["words"]))')
# shellcheck disable=SC2086
tandem_ends 0 $words
python3 - << 'END' || fail "a kept value is not what its command prints"
import json
kept = json.loads(open("kept/again/points.jsonl").readline())["value"]
printed = json.JSONDecoder().raw_decode(open("out").read())[0]["results"][0]["value"]
raise SystemExit(abs(kept - printed) > 1e-9 * abs(printed))
END

# --- what is wrong is named
tandem_ends 1 experiment
holds err 'which one'
tandem_ends 1 experiment qr-broadcast
holds err 'there is no qr-broadcast'
tandem_ends 2 experiment --quick --smoke again
sed 's/binomial/binomal/' "$sources/experiments/qr-broadcasts/experiment.toml" > mine/again/experiment.toml
tandem_ends 1 experiment again --from mine --smoke --folder wrong
holds err 'broadcast.*binomal'
sed 's/^unit = .*//' "$sources/experiments/qr-broadcasts/experiment.toml" > mine/again/experiment.toml
tandem_ends 1 experiment again --from mine --smoke
holds err 'experiment.toml: unit is missing'
