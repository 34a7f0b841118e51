#!/usr/bin/env bash
# tools/trace/command_test.sh: `tandem trace` on a trace of a small program: its output, and its refusals.
# Usage: trace_command_test.sh PATH_OF_TANDEM PATH_OF_WRITE_SAMPLE_TRACE PATH_OF_WRITE_LARGE_RUN
set -uo pipefail

tandem=$1
write_sample=$2
write_large=$3
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1

# run STATUS ARGUMENTS...: leaves the streams in the files out and err.
run() {
  local status=$1
  shift
  "$tandem" trace "$@" > out 2> err < /dev/null
  local actual=$?
  ((actual == status)) || { fail "tandem trace $*: exit $actual instead of $status"; cat out err >&2; }
}

"$write_sample" run || fail "no sample"

run 0 info run
holds out '^ranks     2 of 2$'
holds out '^0 on node1, complete +1235 '
holds out '^  worker 0 +3 +1200 .* 0 +0$'
holds out 'clock: 2 comparisons .*offset 100 \+- 20 ns to 300 \+- 20 ns, rate \+0\.100 ppm'
run 0 info run --json
json_holds "o['size'] == 2 and o['records'] == 2470 and o['program'] == './app' and len(o['ranks']) == 2"
json_holds "o['ranks'][1]['actors'][1] | {'bytes': 0, 'bytes_per_record': 0, 'duration_ns': 0} == {'actor': 1, 'name': 'worker 0', \
'kind': 'worker', 'index': 0, 'core': 3, 'packets': 4, 'records': 1200, 'bytes': 0, 'bytes_per_record': 0, 'lost_events': 0, \
'missing_packets': 0, 'truncated': False, 'duration_ns': 0}"
json_holds "o['ranks'][1]['clock_points'][1]['error_ns'] == 20"
run 0 info run/rank-0001 --json
json_holds "[r['rank'] for r in o['ranks']] == [1]"

run 0 dump run --limit 3
(($(wc -l < out) == 3)) || fail "--limit 3 prints $(wc -l < out) lines"
holds out '^ +0\.000000000 +0  progress +comm\.progress_state state=0$'
holds out '^ +0\.000000100 +0  worker 0 +task\.submitted task=1 priority=-2 site=0 accesses=\[2 17\] deps=\[\]$'
run 0 dump run --type task.started,user --rank 1
(($(wc -l < out) == 407)) || fail "--type task.started,user --rank 1 prints $(wc -l < out) lines"
holds out ' 1  progress +user\.mark name=0 value=1\.5$'
run 0 dump run --type comm.send_posted --rank 0 --limit 1 --json
json_holds "o['fields'] == {'request': 0, 'peer': 1, 'channel': 7, 'priority': 5, 'tag': 99, 'bytes': 4096}"
json_holds "o['date_ns'] == 1700000000000002000 and o['ticks'] == 1001000 and o['actor_name'] == 'progress'"
run 2 dump run --type task.strated
holds err 'task\.strated: no such events'
run 2 dump run --rank 7
holds err 'the trace has no such rank'

run 0 check run
holds out '^all checks passed$'
holds out '^tasks     800 started, 800 ended$'
holds out '^messages  6 paired, least latency 19900 ns$'
holds out '^tasks +2  800 submitted, 0 replayed, 800 started, 800 ended, 0 failed, 0 cancelled, 0 joins and events$'
holds out '^sends +-  not checked of ranks 0, 1: comm\.receive_posted not recorded$'
run 0 summary run
holds out ', 2 ranks, .* tasks, makespan [0-9.]+ s$'
holds out '^executing tasks +[0-9.]+ +[0-9.]+ %$'
holds out '^area: time of all kernels / workers '
run 0 summary run --json
json_holds "all(abs(sum(w['seconds'].values()) - o['makespan_s']) < 1e-12 for w in o['workers'])"
json_holds "o['bounds']['critical_path_s'] <= o['makespan_s'] and o['bounds']['area_s'] <= o['makespan_s']"
json_holds "sum(k['tasks'] for k in o['kernels']) == 800"
json_holds "abs(o['efficiency']['load_balance'] * o['efficiency']['serialisation'] * o['efficiency']['transfer'] - o['efficiency']['parallel']) < 1e-12"
json_holds "sum(r['useful_s'] for r in o['efficiency']['ranks']) <= o['seconds']['executing'] + 1e-9"
json_holds "o['communication']['messages'] == sum(p['messages'] for p in o['communication']['matrix']) == 6"
json_holds "len(o['parallelism']['over_time']['running']) == 100 and len(o['parallelism']['ranks']) == 2"
json_holds "o['quality']['lost_events'] == 0 and o['quality']['running_tasks'] == 0"
json_holds "all(a['end_s'] == b['start_s'] for a, b in zip(o['realised_path'], o['realised_path'][1:])) and len(o['realised_path']) > 1"
run 2 summary nowhere
run 2 summary run --memory much
holds err "'much' is not a size"

# The output with tables in temporary files equals that with tables in main memory.
"$write_large" long 60000 4 2 || fail "no long run"
for form in '' --json; do
  run 0 summary long $form
  mv out in_memory
  run 0 summary long $form --memory 1KiB
  cmp -s out in_memory || fail "summary $form --memory 1KiB says something else"
done

# Two kinds of worker have a common bound, the optimum of a linear program.
"$write_large" kinds 2000 2 4 1 || fail "no run on two kinds of worker"
run 0 summary kinds
holds out '^area: all kernels on 6 cpu and 2 cuda workers '
holds out '^  on cuda +[0-9]+ +'
holds out '^gemm +cuda +[0-9]+ +[0-9.]+ +([0-9.]+|not known)$'
run 0 summary kinds --json
json_holds "o['area']['kinds'] == [{'name': 'cpu', 'workers': 6}, {'name': 'cuda', 'workers': 2}]"
json_holds "0 < o['bounds']['area_s'] <= o['makespan_s'] and sum(k['tasks'] for k in o['area']['kernels']) == 2000"
json_holds "abs(sum(k['total_s'] for k in o['area']['kernels']) - o['seconds']['executing']) < 1e-9"
json_holds "not o['area']['exact'] or all(
  abs(sum(k['placed'] * k['total_s'] / k['tasks'] for k in o['area']['kernels'] if k['kind'] == kind['name'])
      / kind['workers'] / o['bounds']['area_s'] - 1) < 1e-3 for kind in o['area']['kinds'])"
json_holds "all({k['kind'] for k in kernel['kinds']} == {'cpu', 'cuda'} and kernel['outliers'] == sum(k['outliers'] for k in kernel['kinds'])
  and kernel['tasks'] == sum(k['tasks'] for k in kernel['kinds']) for kernel in o['kernels'])"
run 0 check run --json
json_holds "next(a for a in o['accounts'] if a['name'] == 'tasks')['counts']['ended'] == 800"
json_holds "next(a for a in o['accounts'] if a['name'] == 'sends')['skipped'][0]['ranks'] == [0, 1]"
cp -r run damaged
printf 'x' | dd of=damaged/rank-0001/stream_0001 bs=1 seek=64 conv=notrunc 2> /dev/null
run 1 check damaged
holds out 'violated 1 time: every packet and record follows the format'
holds out 'stream_0001: at byte '
run 1 check damaged --json
json_holds "o['violations'][0]['count'] == 1 and o['notes']"

run 0 archive run -o run.tar.zst
if command -v bsdtar > /dev/null || { command -v tar > /dev/null && command -v zstd > /dev/null; }; then
  mkdir unpacked
  if command -v bsdtar > /dev/null; then bsdtar -xf run.tar.zst -C unpacked; else zstd -dcq run.tar.zst | tar -xf - -C unpacked; fi
  diff -r run unpacked/run || fail "the archive holds something else"
fi
run 1 archive run -o nowhere/run.tar.zst
holds err 'nowhere/run.tar.zst'

# The trace of a killed rank is refused, recovered, and read.
sleep 0 &
wait $!
"$write_sample" killed "$folder/live" $! || fail "no sample of a killed rank"
run 2 info killed
holds err 'killed before it ended its trace.*tandem trace recover killed/rank-0001'
run 0 recover killed
holds out '^1 rank recovered: 321 events in 3 packets added, [0-9]+ bytes of unfinished packets cut off$'
[[ ! -e live && ! -L killed/rank-0001/tandem/live ]] || fail "the live file is still there"
run 0 recover killed
holds out '^nothing to recover'
run 0 check killed
holds out ', 1 ran when the program was killed$'
run 0 info killed
holds out '^1 on .*, killed, recovered +1237 '
"$write_sample" alive "$folder/live" $$ || fail "no sample of a rank that lives"
run 2 info alive
holds err "process $$ is still writing"
run 2 recover alive
holds err 'is alive'
run 0 recover alive --force

# Folders without a trace are refused.
mkdir empty
for command in info dump check archive recover; do
  run 2 $command nowhere
  holds err 'nowhere: there is no such folder'
  run 2 $command empty
  holds err 'empty: is no trace'
  run 2 $command
done
run 2
echo '{' > damaged/rank-0000/tandem/rank.json
run 1 info damaged
holds err 'rank-0000/tandem/rank.json: is no JSON object'

((failures == 0)) || exit 1
