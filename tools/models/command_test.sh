#!/usr/bin/env bash
# tools/models/command_test.sh: a run teaches, and `tandem models` shows, draws, compares and prunes what it taught.
# Usage: models_command_test.sh PATH_OF_TANDEM
set -uo pipefail

tandem=$1
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"
export XDG_CACHE_HOME=$folder/cache TANDEM_RANKS=alone
here=$folder/cache/tandem/models/$(hostname)

# --- nothing yet; and a run without the option teaches nothing
tandem_ends 0 models list
holds out 'no performance models: run a program with --tandem.models=on'
tandem_ends 0 linalg potrf -n 256 --nb 64
[[ ! -e $here ]] || fail "a run without option models made $here"

# --- a run teaches
tandem_ends 0 linalg potrf -n 512 --nb 64 --tandem.models=on
tandem_ends 0 models list
holds out '^gemm +1 +[0-9]+ .* cpu$'
holds out '^potrf +1 +[0-9]+'
tandem_ends 0 models list --json
json_holds "{c['codelet'] for c in o['codelets']} >= {'gemm', 'potrf', 'trsm', 'herk'} and o['refused'] == []"
json_holds "[c['durations'] for c in o['codelets'] if c['codelet'] == 'gemm'][0] % 56 == 0"  # 8 x 8 tiles
tandem_ends 0 models show gemm
holds out '^gemm on cpu'
holds out ' 96 KiB '
tandem_ends 0 models show gemm --json
json_holds "len(o['rows']) == 1 and o['rows'][0]['bytes'] == 3 * 64 * 64 * 8 and o['rows'][0]['known'] and 1e3 < o['rows'][0]['mean_ns'] < 1e8"
holds "$here/gemm.toml" '^codelet = "gemm"$'

# --- more sizes give a law, and a picture
for nb in 32 96 128; do tandem_ends 0 linalg potrf -n 512 --nb $nb --tandem.models=on; done
tandem_ends 0 models show gemm
holds out 'law: .* \(bytes / .*\)\^'
tandem_ends 0 models plot gemm -o gemm.svg
python3 -c "import xml.dom.minidom as m; d = m.parse('gemm.svg'); import sys; sys.exit(len(d.getElementsByTagName('circle')) < 4 or len(d.getElementsByTagName('polyline')) != 1)" ||
  fail "gemm.svg has not a point for each size and one law"

# --- mistakes
tandem_ends 1 models show gem
holds err 'there is no performance model of .gem. .*did you mean gemm'
tandem_ends 2 models
tandem_ends 2 models show

# --- two folders
cp -r "$here" other
sed -i 's/\(durations: [0-9.]*\)\(.*\)/\1\2/; s/^machine = .*/machine = "another one"/' other/*.toml
tandem_ends 0 models compare "$here" other --json
json_holds "len(o['rows']) >= 4 and o['only_a'] == o['only_b'] == 0 and all(abs(r['ratio'] - 1) < 1e-9 for r in o['rows'])"
rm other/gemm.toml
tandem_ends 0 models compare "$here" other
holds out ', [1-9][0-9]* in A alone, 0 in B alone'

tandem_ends 1 models compare "$here" .
holds err 'holds no performance models'

# --- what is damaged, or of another machine, is refused: by the list, and by a run, which goes on
truncate -s 200 "$here/gemm.toml"
cp other/potrf.toml "$here/potrf.toml"
tandem_ends 0 models list
holds out 'refused: .*gemm.toml: .*(damaged|truncated)'
holds out 'refused: .*potrf.toml: is of another machine'
tandem_ends 0 linalg potrf -n 256 --nb 64 --tandem.models=on
holds err 'gemm.toml: .*put aside as gemm.toml.refused'
tandem_ends 0 models prune
holds out 'removed .*gemm.toml.refused'
tandem_ends 0 models list --json
json_holds "o['refused'] == [] and 'gemm' in {c['codelet'] for c in o['codelets']}"
tandem_ends 0 models prune gemm
tandem_ends 1 models show gemm
tandem_ends 0 models prune --days 0
tandem_ends 0 models list
holds out 'no performance models'

# --- option model.folder
tandem_ends 0 linalg potrf -n 256 --nb 64 --tandem.models=on --tandem.model.folder="$folder/mine"
[[ -e mine/gemm.toml ]] || fail "option model.folder was not used"

((failures == 0)) || exit 1
echo "tandem models: all as expected"
