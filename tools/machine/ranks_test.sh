#!/usr/bin/env bash
# tools/machine/ranks_test.sh: `tandem machine --links` on several ranks: messages are measured beside copies and other ranks, one rank writes,
# and programs take the file.
# Usage: machine_ranks_test.sh PATH_OF_TANDEM
set -uo pipefail

tandem=$1
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}" "${!SLURM_@}" "${!LSB_@}" PBS_NODEFILE OAR_NODEFILE
# Every machine has links: main memory moves data to another memory.
export TANDEM_MEMORY=64MiB TANDEM_WORKERS=1

# A busy machine may not measure everything in time, so it gets three tries.
for _ in 1 2 3; do
  tandem_ends 0 run -n 2 "$tandem" machine --links --save machine.toml
  figures=$(grep -cE '^(loaded|beside_messages)_gb_s = ' machine.toml)
  ((figures == 4)) && break
done
((figures == 4)) || { fail "links have no figures under load:"; cat machine.toml >&2; }
holds out 'memory 0|main memory'
holds out 'beside messages +of it$'
holds out 'messages over shm \(measured\)$'
(($(grep -c 'kind     data up to' out) == 1)) || fail "not one rank has printed"
holds machine.toml '^\[network\.shm\]$'
# All sizes that were reached in the time, of eight.
one='[0-9.e+]+([KM]iB|B)?'
sizes=$(sed -n 's/^sizes *= "\(.*\)"$/\1/p' machine.toml | wc -w)
((sizes >= 1 && sizes <= 8)) || fail "$sizes sizes of messages"
keys=(sizes alone_us)
for key in both_ways_us loaded_us; do  # measured behind, if there is time
  ! grep -q "^$key" machine.toml || keys+=("$key")
done
for key in "${keys[@]}"; do holds machine.toml "^$key += \" *$one( +$one){$((sizes - 1))}\"$"; done

all_measured="[(m['transport'], m['source'], 1 <= len(m['sizes']) <= 8) for m in o['machine']['messages']] == [('tcp', 'measured', True)] and all(
  s[k] > 0 for s in o['machine']['messages'][0]['sizes'] for k in ('alone_us', 'both_ways_us', 'loaded_us', 'all_pairs_us')) and all(
  l['beside_messages_gb_s'] > 0 for l in o['machine']['links'])"
for _ in 1 2 3; do
  tandem_ends 0 run -n 4 -x TANDEM_COMM_TRANSPORTS=tcp "$tandem" machine --links --json
  python3 -c "import json, sys; o = json.load(open('out')); sys.exit(not ($all_measured))" 2> err && break
done
json_holds "$all_measured"

# The saved file is read, saved again unchanged, and used.
tandem_ends 0 run -n 2 "$tandem" machine --save again.toml --tandem.machine=machine.toml
cmp machine.toml again.toml || fail "machine --save changed a file that it had read"
tandem_ends 0 run -n 2 "$tandem" linalg potrf -n 256 --nb 64 --check --tandem.machine=machine.toml
sed 's/^alone_us .*/alone_us = "1 2 3 4 5 6 7 8 9"/' machine.toml > damaged.toml
tandem_ends 2 machine --tandem.machine=damaged.toml
holds err "option machine: damaged.toml:[0-9]+: network\.shm\.alone_us is '1 2 3 4 5 6 7 8 9'; write $sizes numbers of us, one for each of the sizes"

# A process alone measures its own links.
tandem_ends 0 machine --links
holds out '^Messages are measured on several ranks: tandem run -n 2 tandem machine --links'
tandem_ends 0 run -n 2 "$tandem" machine --links --tandem.ranks=alone
(($(grep -c 'Messages are measured on several ranks' out) == 2)) || fail "ranks that are alone are not two machines"

((failures == 0))
