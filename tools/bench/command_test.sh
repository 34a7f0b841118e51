#!/usr/bin/env bash
# tools/bench/command_test.sh: `tandem bench` over programs that are shell scripts: its calls, output and error
# handling.
# Usage: bench_command_test.sh PATH_OF_TANDEM LIBEXECDIR_SEEN_FROM_BINDIR
set -uo pipefail

tandem=$1
from_bin=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1

# reports NAME=MEDIAN...: the body of a script that prints a report with these results.
reports() {
  local results="" pair
  for pair in "$@"; do
    results+=", {\"name\": \"${pair%%=*}\", \"unit\": \"ns/task\", \"median\": ${pair#*=}, \"min\": 1, \"max\": 9, \"n\": 1}"
  done
  echo "echo '{\"peer\": \"x\", \"version\": \"1.2\", \"workers\": 2, \"results\": [${results#, }]}'"
}

# counting FILE VALUE...: a script body that prints `chain` with the next of the values at every call.
counting() {
  local file=$1
  shift
  echo "set -- $*; n=\$(cat $file 2> /dev/null || echo 0); echo \$((n + 1)) > $file; shift \$n
echo '{\"results\": [{\"name\": \"chain\", \"unit\": \"ns/task\", \"median\": '\$1'}]}'"
}

# run STATUS ARGUMENTS...: leaves the streams in the files out and err.
run() {
  local status=$1
  shift
  "$tandem" bench "$@" > out 2> err < /dev/null
  local actual=$?
  ((actual == status)) || { fail "tandem bench $*: exit $actual instead of $status"; cat out err >&2; }
}

json_holds() {
  python3 -c "import json, sys; o = json.load(open('out')); r = {p['name']: p for p in o['results']}; sys.exit(not ($1))" ||
    { fail "not ($1) of:"; cat out err >&2; }
}

# draws ARGUMENTS...: such a benchmark leaves a picture, where a Python can draw.
draws() {
  local python
  for python in "${TANDEM_PYTHON:-}" python3; do
    [[ -n $python ]] && "$python" -c 'import matplotlib' 2> /dev/null || continue
    run 0 "$@" --picture drawn.png --tandem.python="$python"
    [[ $(head -c 4 drawn.png | tail -c 3) == PNG ]] || fail "bench $*: drawn.png is no picture"
    rm -f drawn.png
    return
  done
}

# The table: medians, extremes, ratios within a round. The first value of each is that of the round that does not count.
program all/bench_tasks_tandem "$(counting ours 999 10 20 60)"
program all/peer_tasks_starpu "$(counting theirs 999 100 400 200)"
program all/peer_tasks_tbb "$(reports chain=40)"
run 0 tasks --bin all --rounds 3
holds out '^chain +tandem +20 +10 +60 ns/task +-$'
holds out '^ +starpu +200 +100 +400 ns/task +0\.100$'
holds out '^ +tbb +40 +40 +40 ns/task +0\.500$'
holds err 'openmp is missing: there is no program all/peer_tasks_openmp'
grep -q . <<< "$(tr -cd '\r' < err)" && fail "progress goes to what is no terminal"

# JSON: one object on standard output, with the members that DESIGN names.
program json/bench_tasks_tandem "$(reports bytes_per_task=200 independent=10 chain=20 cholesky_replay=5)"
program json/peer_tasks_starpu "$(reports independent=100 chain=50)"
program json/peer_tasks_openmp "$(reports chain=40 elsewhere=3)"
run 0 tasks --bin json --rounds 2 --workers 2 --json
json_holds "o['benchmark'] == 'tasks' and o['machine']['core_count'] > 0 and o['tandem'] and o['commit']"
json_holds "list(r) == ['bytes_per_task', 'independent', 'chain', 'cholesky_replay', 'elsewhere']"
json_holds "r['chain']['value'] == 20 and r['chain']['n'] == 2 and r['chain']['unit'] == 'ns/task'"
json_holds "r['chain']['peers'] == {'openmp': 40, 'starpu': 50}"
json_holds "r['chain']['ours_over_peer'] == {'openmp': 0.5, 'starpu': 0.4}"
json_holds "r['independent']['peers'] == {'starpu': 100} and r['bytes_per_task']['peers'] == {}"
json_holds "r['elsewhere']['params'] == {'workers': 2, 'program': 'openmp'} and r['chain']['params'] == {'workers': 2}"
json_holds "o['versions']['starpu'] == '1.2' and 'taskflow' in o['missing'] and 'starpu' not in o['missing']"

# Peers that fail are named with the reason, once, and the others continue.
program bad/bench_tasks_tandem "$(reports chain=20)"
program bad/peer_tasks_starpu 'kill -SEGV $$'
program bad/peer_tasks_openmp 'echo "no such device" >&2; exit 3'
program bad/peer_tasks_libomp 'exec 2>&- 1>&-; exec sleep 60'
program bad/peer_tasks_tbb 'sleep 60 & echo $! > orphan; echo "{\"results\": [{\"name\": \"chain\""'
program bad/peer_tasks_taskflow 'echo "{\"results\": [{\"name\": \"chain\", \"unit\": \"ns/task\"}]}"'
SECONDS=0
run 0 tasks --bin bad --rounds 2 --timeout 2
((SECONDS < 20)) || fail "a program that hangs holds up the rest for $SECONDS s"
holds out '^chain +tandem +20 '
holds err 'starpu is missing: killed by signal 11 '
holds err 'openmp is missing: exit code 3: no such device$'
holds err 'libomp is missing: still running after 2 s, killed$'
holds err 'tbb is missing: its output is no JSON$'
holds err 'taskflow is missing: its result chain has no median$'
(($(grep -c 'is missing' err) == 5)) || fail "a peer that fails is named more than once, or never"
sleep 0.2
# A zombie that was not reaped yet is no running process.
state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$(cat orphan)/status" 2> /dev/null)
[[ -z $state || $state == [ZX] ]] || fail "what a program left running is still there"
rm bad/peer_tasks_libomp  # so that the others can have all the time they need
for body in 'true' 'echo 7' 'echo "[]"' 'echo "{\"results\": 3}"' 'echo "{\"results\": [3]}"' 'head -c 100000 /dev/urandom' \
  'echo "{\"results\": [{\"name\": \"chain\", \"median\": \"many\"}]}"' 'yes | head -c 20000000'; do
  program bad/peer_tasks_starpu "$body"
  run 0 tasks --bin bad --rounds 1 --json
  json_holds "r['chain']['value'] == 20 and 'its ' in o['missing']['starpu']"
done
program bad/peer_tasks_starpu 'echo x'
chmod -x bad/peer_tasks_starpu
run 0 tasks --bin bad --rounds 1
holds err 'starpu is missing: exit code 127: cannot be executed: Permission denied$'

# A program that fails in a later round keeps the rounds before.
program late/bench_tasks_tandem "$(reports chain=20)"
program late/peer_tasks_tbb "$(counting late_calls 30 30)"
run 0 tasks --bin late --rounds 3
holds out '^ +tbb +30 .* 0\.667$'
holds err 'tbb is missing: .*\(in round 2\)$'

# When the time is over, the results so far are printed, and their number of rounds.
program slow/bench_tasks_tandem "sleep 0.3; $(reports chain=20)"
run 0 tasks --bin slow --rounds 50 --budget 1s
holds out '^chain +tandem +20 '
holds out '^rounds: [1-3] of 50, since the time was over \(--budget 1s\)$'
run 0 tasks --bin slow --rounds 50 --budget 1s --json
json_holds "o['results'][0]['n'] == o['cut_short'][0]['rounds'] < 4"
run 0 tasks --bin late --rounds 2 --budget 0
grep '^rounds:' out && fail "without a limit the time was over"
run 2 tasks --bin slow --budget soon
holds err 'error: bench tasks: --budget soon: '

# Without our own program there is nothing to compare.
run 1 tasks --bin /
holds err "error: .*Tandem's program failed: there is no program /bench_tasks_tandem"
program none/bench_tasks_tandem 'exit 1'
program none/peer_tasks_tbb "$(reports chain=20)"
run 1 tasks --bin none --rounds 1 --json
json_holds "r['chain']['params']['program'] == 'tbb' and o['missing']['tandem'] == 'exit code 1'"

# The programs' arguments: options, and the configuration of the command line, which peers do not get.
program given/bench_wake_tandem 'echo "$* $TANDEM_SCHED" > given_ours; '"$(reports idle_cpu=0.5)"
program given/peer_wake_tbb 'echo "$* $TANDEM_SCHED" > given_tbb; '"$(reports idle_cpu=0.25)"
run 0 wake --bin given --rounds 1 --workers 3 --trials 7 --tandem.sched=lws
holds given_ours '^--workers 3 --repetitions 1 --trials 7 lws$'
holds given_tbb '^--workers 3 --repetitions 1 --trials 7 $'
holds out '^ +tbb .* 2\.000$'

# Cholesky: several sizes, the bound held against potrf, StarPU under two schedulers.
program cholesky/tandem 'echo "$*" >> given_cholesky
echo "{\"tandem\": \"0.1\", \"results\": [{\"name\": \"potrf\", \"unit\": \"GFlop/s\", \"value\": 90}]}"'
program cholesky/peer_cholesky_kernels "$(reports bound=100 tile_gemm=120)"
program cholesky/peer_cholesky_starpu '[ "$STARPU_SCHED" = lws ] && v=45 || v=60
echo "{\"results\": [{\"name\": \"potrf\", \"unit\": \"GFlop/s\", \"median\": $v}]}"'
run 0 cholesky --bin cholesky --rounds 1 --workers 2 -n 64,32 --nb 8,4 --precision s --json
holds given_cholesky '^linalg potrf -n 64 --json --nb 8 --workers 2 --precision s --repetitions 1$'
holds given_cholesky '^linalg potrf -n 32 --json --nb 4 '
json_holds "[(p['name'], p['params']['n'], p['params']['nb']) for p in o['results']] == \
[('potrf', 64, 8), ('tile_gemm', 64, 8), ('potrf', 32, 4), ('tile_gemm', 32, 4)]"
json_holds "r['potrf']['ours_over_peer'] == {'kernels': 0.9, 'starpu': 2, 'starpu_prio': 1.5}"
json_holds "r['potrf']['peers'] == {'kernels': 100, 'starpu': 45, 'starpu_prio': 60} and o['versions']['tandem'] == '0.1'"

# Ping-pong: a suite of polling and one of sleeping processes per transport; the size is a parameter.
program pingpong/bench_pingpong_tandem 'echo "$*" >> given_pingpong; '"$(reports half_4=2 half_1024=3)"
program pingpong/peer_pingpong_bare "$(reports half_4=1)"
run 0 pingpong --bin pingpong --rounds 1 --transport tcp --json
holds given_pingpong '^--transport tcp --repetitions 1 --least 4 --most 4$'
holds given_pingpong '^--transport tcp --repetitions 1 --least 67108864 --most 67108864$'
holds given_pingpong '^--transport tcp --repetitions 1 --sleep$'
json_holds "[p['params'] for p in o['results'][:2]] == [{'transport': 'tcp', 'bytes': 4}, {'transport': 'tcp', 'bytes': 1024}]"
json_holds "o['results'][0]['ours_over_peer'] == {'bare': 2} and o['missing']['ucx']"
# The stability probe, here the bare program, always gives 1; each of the two programs runs seven sizes, in two rounds.
json_holds "[(w['usual'], w['runs'], w['repeated'], w['unusual']) for w in o['stability']] == [(1, 28, 0, 0)]"

# Traced: the same program twice, the second time with a folder for its trace, which is removed in the end.
program traced/bench_pingpong_tandem 'echo "$* ${PINGPONG_TRACE:-none}" >> given_traced
[ -z "${PINGPONG_TRACE:-}" ] && v=2 || { v=3; mkdir -p "$PINGPONG_TRACE/rank-0000"; }
echo "{\"results\": [{\"name\": \"half_4\", \"unit\": \"us\", \"median\": $v}]}"'
run 0 pingpong --bin traced --rounds 1 --transport shm --traced --json
holds given_traced '^--transport shm --repetitions 3 --least 4 --most 4 none$'
holds given_traced '^--transport shm --repetitions 3 --least 4 --most 4 /.+$'
json_holds "r['half_4']['value'] == 2 and r['half_4']['peers'] == {'traced': 3} and len(o['results']) == 1"
traced_into=$(sed -n 's/.* \(\/[^ ]*\)$/\1/p' given_traced | head -1)
[[ -n $traced_into && ! -e $traced_into ]] || fail "bench pingpong --traced leaves $traced_into"

# Between tasks: launched by others, unbound and bound, for each number of ranks.
program between/tandem_ranks 'echo "ranks $2" >> given_between; shift 2; exec "$@"'
program between/mpi_ranks 'shift; exec "$@"'
program between/bench_flow_pingpong_tandem 'echo "$*" >> given_between; '"$(reports comm_8=1 flow_8=2)"
program between/bench_arrival_tandem "$(reports arrive_busy=3)"
run 0 flow_pingpong --bin between --rounds 1 --ranks 2,4 --trips 10 --json
holds given_between '^ranks 4$'
holds given_between '^--bytes 8 --trips 10 --repetitions 3 --bound$'
json_holds "[(p['name'], p['params']['ranks'], p['params']['bound'], p['value']) for p in o['results'][:3]] == \
[('comm_8', 2, False, 1), ('flow_8', 2, False, 2), ('comm_8', 2, True, 1)]"
run 0 arrival --bin between --rounds 1 --busy 2 --json
json_holds "o['results'][0]['params'] == {'workers': 2} and o['results'][0]['value'] == 3"

# Urgent tasks: three ways, in namespaces.
program urgent/bench_urgent_tandem 'echo "$TANDEM_COMM_PORT_PRIORITIES $TANDEM_ANNOUNCE" >> given_urgent; '"$(reports step=5)"
program urgent/tandem_ranks 'shift 2; exec "$@"'
program urgent/netns 'echo "$1 $2 $3 $4 $5" >> given_urgent; shift 5; exec "$@"'
run 0 urgent --bin urgent --rounds 1 --ranks 4 --rate 1gbit --json
holds given_urgent '^run 4 --rate 1gbit --$'
holds given_urgent '^true true$'
holds given_urgent '^true false$'
holds given_urgent '^false false$'
json_holds "o['results'][0]['value'] == 5 and o['results'][0]['params']['ranks'] == 4"

# Broadcasts: programs are started by others, in namespaces when a rate is given; trees are a parameter; details are kept.
program bcast/bench_bcast_tandem 'echo "$*" >> given_bcast
echo "{\"results\": [{\"name\": \"automatic\", \"unit\": \"ms\", \"median\": 20, \"details\": {\"arrived_ms\": [1, 2]}}]}"'
program bcast/peer_bcast_bare 'echo "$*" >> given_bare; '"$(reports automatic=10 chain=16)"
program bcast/peer_bcast_mpi "$(reports automatic=40)"
program bcast/tandem_ranks 'echo "ranks $2" >> given_bcast; shift 2; exec "$@"'
program bcast/mpi_ranks 'shift; [ "$1" = --pipeline ] && shift 2; exec "$@"'
program bcast/netns 'echo "$1 $2 $3 $4 $5" >> given_netns; shift 5; exec "$@"'
run 0 bcast --bin bcast --rounds 1 --recipients 7 --rate 200mbit --trees automatic,flat --json
holds given_netns '^run 8 --rate 200mbit --$'
holds given_bcast '^ranks 8$'
holds given_bcast '^--bytes 439296 --repetitions 3 --pause-ms 30 --trees automatic,flat$'
holds given_bare '--ranks 8$'
json_holds "r['automatic']['value'] == 20 and r['automatic']['peers'] == {'bare': 10, 'openmpi': 40, 'openmpi_ibcast': 40, 'openmpi_pipeline': 40}"
json_holds "r['automatic']['params'] == \
{'bytes': 439296, 'recipients': 7, 'namespaces': True, 'rate': '200mbit', 'tree': 'automatic'}"
json_holds "r['automatic']['details'] == {'arrived_ms': [1, 2]} and r['chain']['params']['program'] == 'bare'"
json_holds "'peer_bcast_starpu' in o['missing']['starpu']"
rm given_netns
run 0 bcast --bin bcast --rounds 1 --recipients 3,7 --bytes 100,2000 --without-starpu
[[ ! -e given_netns ]] || fail "namespaces without a rate"
for case in '100 bytes to 3' '100 bytes to 7' '2000 bytes to 3' '2000 bytes to 7'; do holds out "broadcast of $case recipients, one host"; done

# Two ranks of ours and of MPI: each under its launcher, in namespaces where a rate is given, over the requested
# transport.
program two/bench_burst_tandem 'echo "$*" >> given_burst; '"$(reports expected_exact_1=2)"
program two/peer_burst_mpi 'echo "$* $OMPI_MCA_btl" >> given_burst_mpi; '"$(reports expected_exact_1=4)"
program two/bench_priority_tandem 'echo "$*" >> given_priority; '"$(reports behind=2)"
program two/peer_priority_mpi "$(reports behind=4)"
program two/bench_overlap_tandem "$(reports hidden=95)"
program two/peer_overlap_mpi "$(reports hidden=50)"
program two/tandem_ranks 'shift 2; exec "$@"'
program two/mpi_ranks 'shift; exec "$@"'
program two/netns 'echo "$*" >> given_netns_two; shift 5; exec "$@"'
run 0 burst --bin two --rounds 1 --most 5 --json
holds given_burst '^--most 5 --repetitions 3$'
holds given_burst_mpi '^--most 10000 --repetitions 3 vader,self$'
json_holds "r['expected_exact_1']['ours_over_peer'] == {'openmpi': 0.5}"
run 0 priority --bin two --rounds 1 --transport tcp --json
holds given_priority '^--transport tcp --repetitions 3$'
run 0 overlap --bin two --rounds 1 --rate 1gbit --json
holds given_netns_two '^run 2 --rate 1gbit --'
json_holds "[p['params']['transport'] for p in o['results']] == ['tcp', 'shm']"

# Ring: one run without a warm-up, a table of its own, details in JSON.
program ring/bench_ring_tandem 'echo "$*" >> given_ring
echo "{\"results\": [{\"name\": \"piecewise\", \"unit\": \"us\", \"median\": 0.25,
\"details\": {\"duration\": 12.5, \"error_p01\": -0.5, \"violations\": 0, \"series\": [[[0, 1, 2]]]}}]}"'
run 0 ring --bin ring --ranks 3 --seconds 7
holds given_ring '^--ranks 3 --seconds 7 --period 10 --transport shm$'
(($(wc -l < given_ring) == 1)) || fail "bench ring runs its program more than once"
holds out '^piecewise +12\.5 +-0\.5 +- +- +- +0$'
run 0 ring --bin ring --json
json_holds "r['piecewise']['value'] == 0.25 and r['piecewise']['details']['series'] == [[[0, 1, 2]]]"
json_holds "r['piecewise']['params'] == {'ranks': 4, 'seconds': 60, 'period_ms': 10, 'transport': 'shm'}"
run 2 ring --bin ring --picture nowhere/x.png
holds err 'there is no folder nowhere'
program ring/bench_ring_tandem 'exit 3'
run 1 ring --bin ring --picture x.png --tandem.python=nowhere
(($(grep -vc 'computes with kernels for' err) == 1)) || { fail "bench ring draws what failed:"; cat err >&2; }
# The program itself, where it was built: every method prints all that it has to.
if [[ -x $(dirname "$tandem")/bench_ring_tandem ]]; then
  run 0 ring --seconds 1 --ranks 3 --timeout 60 --json
  json_holds "list(r) == ['true', 'plain_barrier', 'one_barrier', 'two_barriers', 'piecewise']"
  json_holds "all(len(r[m]['details']['series']) == 3 for m in list(r)[1:]) and r['piecewise']['details']['violations'] == 0"
  draws ring --seconds 1 --ranks 3 --timeout 60
fi

# Flushes: one process of each way per round, in an order that rotates; errors are reported before anything runs. The
# program stands in for `tandem linalg`, which leaves a trace only where it has to.
program flushes/tandem 'echo "$*" > given_flushes
echo "${TANDEM_TRACE:-off} ${TANDEM_TRACE_WHEN_FULL:-} ${TANDEM_TRACE_MEMORY:-} ${TANDEM_TRACE_BUFFER:-}" >> given_ways
[ -z "$TANDEM_TRACE" ] || '"'$tandem'"' linalg potrf -n 128 --nb 16 --repetitions 2 > /dev/null || exit 1
t=0.2; [ "${TANDEM_TRACE_WHEN_FULL:-}" = wait ] && t=0.4
echo "{\"results\": [{\"name\": \"potrf\", \"value\": 9, \"details\": {\"seconds\": [0.1, $t, 0.1]}}]}"'
run 0 flushes --bin flushes --rounds 2 --workers 2 -n 64 --nb 16 --repetitions 3 --memory 64KiB --traces .
holds given_flushes '^linalg potrf -n 64 --nb 16 --workers 2 --repetitions 3 --json$'
[[ $(cat given_ways) == "off   
all lose 64KiB 8KiB
all wait 64KiB 8KiB
all wait 64KiB 8KiB
all lose 64KiB 8KiB
off   " ]] || { fail "bench flushes runs other things, or in another order:"; cat given_ways >&2; }
holds out '^1 +untraced +100.00 +200.00 +2.0000 +1.0000 +- +- +- +-$'
holds out '^ +lose +100.00 +200.00 +2.0000 +1.0000 +0\.[0-9]+ +[0-9]+ +0\.000 +0\.0$'
holds out '^median +untraced +100.00 +200.00 +2.0000 '
holds out '^ +wait +100.00 +400.00 +4.0000 '
compgen -G 'bench-flushes-*' > left && fail "bench flushes leaves its traces: $(cat left)"
run 0 flushes --bin flushes --rounds 2 --workers 2 -n 64 --nb 16 --repetitions 3 --json
json_holds "list(r) == ['untraced', 'lose', 'wait'] and [r[w]['value'] for w in r] == [2, 2, 4] and r['wait']['n'] == 2"
json_holds "r['wait']['details']['seconds'] == [[0.1, 0.4, 0.1]] * 2 and r['lose']['details']['median_over_untraced'] == [1, 1]"
json_holds "all(e > 1000 for e in r['lose']['details']['events']) and r['lose']['details']['lost_events'] == [0, 0]"
json_holds "'events' not in r['untraced']['details'] and r['lose']['params']['memory'] == '256KiB'"
# The real program: many flushes, and no time of a factorisation is missing.
run 0 flushes --rounds 1 --workers 2 -n 512 --nb 16 --repetitions 3 --memory 128KiB --json
json_holds "all(len(r[w]['details']['seconds'][0]) == 3 for w in r) and r['wait']['details']['buffers'][0] > 50"
# With a fast flusher there may be no waiting (trace_test checks that waits are recorded); but nothing is lost.
json_holds "r['wait']['details']['lost_events'] == [0] and 0 <= r['wait']['details']['waited_s'][0] < 60"
json_holds "r['lose']['details']['waited_s'] == [0] and r['lose']['details']['trace_bytes'][0] > 0"
draws flushes --bin flushes --rounds 2 -n 64 --nb 16
rm -f given_ways
run 2 flushes --bin flushes -n 32 --nb 64
holds err 'a tile of 64 is larger than the matrix, of 32'
run 2 flushes --bin flushes --memory 4KiB
holds err 'a buffer of 8KiB does not fit into a memory of 4KiB'
run 2 flushes --bin flushes --buffer much
holds err "'much' is not a size"
run 2 flushes --bin flushes --picture nowhere/x.png
holds err 'there is no folder nowhere'
run 2 flushes --bin flushes --traces nowhere
[[ ! -e given_ways ]] || fail "a wrong use of bench flushes runs programs"
program flushes/tandem 'echo "no room" >&2; exit 3'
run 1 flushes --bin flushes
holds err 'bench flushes: untraced: exit code 3: no room$'
program flushes/tandem "$(reports potrf=3)"
run 1 flushes --bin flushes
holds err 'untraced: its JSON has the time of no factorisation'

# Wrong uses.
run 2
holds err 'tandem bench needs a subcommand: tasks, '
run 2 pingpog
holds err 'tandem bench has no subcommand pingpog \(did you mean pingpong\?\)'
run 2 ring --ranks 65
holds err "tandem bench ring: --ranks: '65' is not a number from 2 to 64"
run 2 pingpong --transport carrier_pigeon
run 2 tasks --flow unheard_of
run 2 tasks --rounds 0
run 2 tasks --timeout 0
run 2 tasks --bin nowhere
run 2 cholesky --bin cholesky -n 64,32 --nb 8
holds err 'nb gives 1 tile, -n gives 2 orders'

# Every other benchmark has programs. Each order has its tile.
for name in trace device cuda hybrid polling readers broadcasts clock; do
  run 1 $name --bin /
  holds err "Tandem's program failed: there is no program /"
done
program among/tandem true
program among/tandem_ranks 'echo "$*" >> given_among; '"$(reports potrf=9)"
run 0 ranks --bin among --rounds 1 --ranks 2 -n 64,32 --nb 8,4 --precision s
holds given_among ' 2 among/tandem linalg potrf --tandem.sched=prio -n 64 --json --nb 8 --workers 1 '
holds given_among ' -n 32 --json --nb 4 --workers 1 --precision s '

# Without --bin: beside the command, or where they are installed relative to it.
mkdir -p prefix/bin
cp "$tandem" prefix/bin/tandem
tandem=$folder/prefix/bin/tandem
program prefix/bin/bench_tasks_tandem "$(reports chain=20)"
program "prefix/bin/$from_bin/peer_tasks_tbb" "$(reports chain=40)"
run 0 tasks --rounds 1
holds out '^chain +tandem +20 '
holds out '^ +tbb +40 .* 0\.500$'

((failures == 0)) || exit 1
