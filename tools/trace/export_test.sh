#!/usr/bin/env bash
# tools/trace/export_test.sh: exports of a real run, and of a sample with messages, are read back by the programs that
# they are for.
# Usage: trace_export_test.sh formats|ranks|vite|pajeng|perfetto|processor|parquet|starvz|pictures \
#   PATH_OF_TANDEM PATH_OF_WRITE_SAMPLE_TRACE FOLDER_OF_SOURCES
set -uo pipefail

part=$1
tandem=$2
write_sample=$3
sources=$4
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1

# find_python MODULES: sets python to one that has these modules, or ends the test.
find_python() {
  for python in "${TANDEM_PYTHON:-}" "$sources/.venv/bin/python" python3 /usr/bin/python3; do
    [[ -n $python ]] && "$python" -c "import $1" 2> /dev/null && export TANDEM_PYTHON=$python && return
  done
  echo "skipped: no Python has $1 (scripts/setup --analysis)"
  exit 0
}
case $part in
  vite) command -v vite > /dev/null || { echo "skipped: no vite (Debian: vite)"; exit 0; } ;;
  perfetto) find_python perfetto.protos.perfetto.trace.perfetto_trace_pb2 ;;
  processor)
    processor=$(command -v trace_processor_shell || command -v trace_processor) ||
      { echo "skipped: no trace_processor (https://get.perfetto.dev/trace_processor)"; exit 0; }
    ;;
  pajeng) command -v pj_dump > /dev/null || { echo "skipped: no pj_dump (Debian: pajeng)"; exit 0; } ;;
  parquet | starvz) find_python numpy,pyarrow.parquet ;;
  pictures) find_python matplotlib ;;
esac

# holds_json CONDITION: it holds for the object o that the last command printed into out.
holds_json() {
  python3 -c "import json, sys; o = json.load(open('out')); rows = {t['name']: t['rows'] for t in o.get('tables', [])}
total = {t['name']: t['total_ns'] for t in o.get('tables', [])}
sys.exit(not ($1))" || { fail "not ($1) of:"; cat out err >&2; }
}
value() {
  python3 -c "import json; o = json.load(open('out')); rows = {t['name']: t['rows'] for t in o.get('tables', [])}
total = {t['name']: t['total_ns'] for t in o.get('tables', [])}
print($1)"
}
trace() {
  "$tandem" trace "$@" > out 2> err < /dev/null || { fail "tandem trace $*: exit $?"; cat err >&2; }
}

# Tiles of 128: 20 potrf, trsm, syrk and gemm for a matrix of 512, and 10 that make it, some times.
TANDEM_TRACE=all TANDEM_TRACE_FOLDER=real \
  "$tandem" linalg potrf -n 512 --nb 128 --repetitions 2 --tandem.workers=2 > out 2> err ||
  { fail "the run to be traced"; cat err >&2; }
"$write_sample" sample || fail "no sample"

case $part in
  formats)
    trace info real --json
    holds_json "o['written_by']['commit'] == o['commit'] != ''"
    for run in real sample; do
      trace stats $run --json
      events=$(value "sum(c['events'] for c in o['categories'] if c['category'] != 'about')")
      started=$(value "next(t['events'] for t in o['types'] if t['type'] == 'task.started')")
      holds_json "o['bytes'] < o['stream_bytes'] and sum(a['events'] for a in o['actors']) == o['events']"
      holds_json "sum(sum(t['bins']) for t in o['types']) == $events"
      trace stats $run --bins 3
      holds out '^task\.started +[0-9]+ +[0-9.]+ %'
      trace export $run --format paje -o $run.paje --json
      holds_json "rows['executions'] == $started and o['events'] == $events and total['executions'] == total['tasks'] > 0"
      (($(grep -c '^JobId: ' $run.paje/tasks.rec) == started)) || fail "records of tasks"
      (($(grep -c '^20	' $run.paje/paje.trace) == started)) || fail "states of tasks"
      trace export $run --format perfetto -o $run.pftrace --json
      holds_json "rows['executions'] == $started and o['events'] == $events"
      trace export $run --format goal -o $run.goal --json
      holds_json "rows['executions'] == $started and total['executions'] > 0"
      (($(grep -c '^s[0-9]*: send' $run.goal) == $(grep -c '^r[0-9]*: recv' $run.goal))) || fail "a message without end"
      trace export $run --format ctf -o $run.ctf
      trace check $run.ctf
      holds out '^all checks passed$'
    done
    trace export sample --format paje -o sample.paje --clock none --json
    holds_json "rows['messages'] == 6 and o['clocks']['method'] == 'none'"
    trace export sample --format perfetto -o sample.pftrace
    holds out '^flows +sample\.pftrace +6'
    holds out '^clocks +linear, residual up to [0-9]+ ns; 0 of 6 messages arrive before they were sent$'
    trace export sample --format perfetto --clock piecewise --json
    holds_json "o['out'] == 'sample.pftrace' and o['clocks']['method'] == 'piecewise'"
    "$tandem" trace export sample --format ctf --clock piecewise -o x > out 2> err && fail "a CTF whose clocks are no line"
    holds err "what CTF's metadata can say of a clock is a line"
    "$tandem" trace export sample --format csv > out 2> err && fail "a format that is none"
    "$tandem" trace export nowhere --format paje > out 2> err && fail "a folder that is none"
    "$tandem" trace export sample --format parquet -o x --tandem.python=/nowhere > out 2> err && fail "a Python that is none"
    holds err 'option python: /nowhere is no program'
    ;;

  ranks)
    # Over shared memory, each message has both ends, and data and tasks are known. Exempt are the announcements by
    # which the ranks' clocks end: a rank that has left does not receive them, or not completely; `trace check` verifies
    # that nothing else is unreceived.
    "$tandem" run -n 4 -x TANDEM_TRACE=all -x TANDEM_TRACE_FOLDER="$PWD/ranks" "$tandem" linalg potrf -n 512 --nb 128 --repetitions 1 \
      > out 2> err || { fail "the run of four ranks"; cat err >&2; }
    trace check ranks --json
    paired=$(value "o['messages_paired']")
    holds_json "all(a['ranks'] > 0 and not a['skipped'] for a in o['accounts']) and not o['notes']"
    holds_json "{a['name'] for a in o['accounts']} >= {'tasks', 'sends', 'receives', 'memory', 'bags'}"
    trace export ranks --format perfetto -o ranks.pftrace --json
    holds_json "rows['sends'] >= rows['flows'] == rows['receives'] == $paired > 0"
    holds_json "0 <= $paired - o['clocks']['messages'] <= 8 and all(r['points'] > 1 for r in o['clocks']['ranks'][1:])"
    trace export ranks --format paje -o ranks.paje --json
    holds_json "rows['messages'] == rows['communications'] == $paired"
    (($(grep -c '^Src: ' ranks.paje/comms.rec) == paired)) || fail "records of messages"
    holds ranks.paje/comms.rec '^RecvJobId: [0-3]_[0-9]+$'
    holds ranks.paje/comms.rec '^SendHandle: [0-9a-f]+$'
    ;;

  vite)
    # ViTE runs without a display, and reports the lines that it did not understand.
    export QT_QPA_PLATFORM=offscreen
    for run in real sample; do
      trace export $run --format paje -o $run.paje
      timeout 60 vite -e $run.svg $run.paje/paje.trace > out 2>&1 || fail "vite refuses $run"
      holds out '^0 errors and 0 warnings were found'
      (($(grep -o '<rect' $run.svg | wc -l) > 20)) || fail "vite draws nothing of $run"
    done
    ;;

  pajeng)
    for run in real sample; do
      trace export $run --format paje -o $run.paje --json
      cp out exported
      timeout 60 pj_dump $run.paje/paje.trace > $run.csv 2> err || fail "pj_dump refuses $run"
      [[ ! -s err ]] || { fail "pj_dump complains of $run"; cat err >&2; }
      python3 - $run.csv exported $run.paje/tasks.rec << 'END' || { fail "pj_dump reads something else of $run"; cat exported >&2; }
import json, re, sys

said = {table["name"]: table for table in json.load(open(sys.argv[2]))["tables"]}
names = {line.split(": ", 1)[1].strip() for line in open(sys.argv[3]) if line.startswith("Model: ")}
lines = [re.split(r", ?", line.strip()) for line in open(sys.argv[1])]
# The columns are nature, container, type, start, end, duration, depth, value; times in ms.
executions = [line for line in lines if line[0] == "State" and line[2] == "worker state" and line[7] in names]
total_ns = sum(float(line[5]) for line in executions) * 1e6
assert len(executions) == said["executions"]["rows"], len(executions)
assert abs(total_ns - said["executions"]["total_ns"]) < 1 + 1e-6 * total_ns, total_ns
links = [line for line in lines if line[0] == "Link"]
assert len(links) == said["messages"]["rows"] + said["transfers"]["rows"], len(links)
END
    done
    ;;

  perfetto)
    for run in real sample; do
      trace export $run --format perfetto -o $run.pftrace --json
      "$python" - $run.pftrace out << 'END' || { fail "$run.pftrace holds something else"; cat out >&2; }
import collections, json, sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

trace = perfetto_trace_pb2.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
said = {table["name"]: table for table in json.load(open(sys.argv[2]))["tables"]}
tracks, stacks, names = {}, collections.defaultdict(list), {}
count, total, flows = collections.Counter(), collections.Counter(), [set(), set()]
for packet in trace.packet:
    for name in packet.interned_data.event_names:
        names[name.iid] = name.name
    if packet.HasField("track_descriptor"):
        assert packet.track_descriptor.uuid not in tracks
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
# Events are sorted as Perfetto does: by time, and at one instant in the order of the file.
for packet in sorted((packet for packet in trace.packet if packet.HasField("track_event")), key=lambda packet: packet.timestamp):
    event = packet.track_event
    assert event.track_uuid in tracks
    if event.type == event.TYPE_SLICE_BEGIN:
        assert names[event.name_iid]
        stacks[event.track_uuid].append((event.categories[0], packet.timestamp))
        flows[0].update(event.flow_ids)
        flows[1].update(event.terminating_flow_ids)
    elif event.type == event.TYPE_SLICE_END:
        category, begin = stacks[event.track_uuid].pop()
        count[category] += 1
        total[category] += packet.timestamp - begin
    elif event.type == event.TYPE_COUNTER:
        count["counter"] += 1
    elif event.type == event.TYPE_INSTANT:
        assert names[event.name_iid]
        count["instant"] += 1
assert not any(stacks.values()), "all slices end"
assert flows[0] == flows[1] and len(flows[0]) == said.get("flows", {"rows": 0})["rows"]
assert (count["task"], total["task"]) == (said["executions"]["rows"], said["executions"]["total_ns"])
assert count["counter"] == said["counter values"]["rows"]
assert count["instant"] == sum(said.get(name, {"rows": 0})["rows"] for name in ("marks", "events of the program's own types"))
assert count["comm"] == said.get("sends", {"rows": 0})["rows"] + said.get("receives", {"rows": 0})["rows"]
END
    done
    ;;

  processor)
    # Perfetto itself finds as many slices as were written, with their lengths, none unfinished, and reports no errors.
    cat > query.sql << 'END'
select (select count(*) from slice where category = 'task') as executions,
       (select ifnull(sum(dur), 0) from slice where category = 'task') as total_ns,
       (select count(*) from slice where dur < 0) as unfinished,
       (select count(*) from flow) as flows,
       (select ifnull(sum(value), 0) from stats where severity in ('error', 'data_loss')) as complaints;
END
    for run in real sample; do
      trace export $run --format perfetto -o $run.pftrace --json
      timeout 60 "$processor" -q query.sql $run.pftrace > found 2> err || { fail "trace_processor refuses $run.pftrace"; cat err >&2; }
      expected="$(value "rows['executions']"),$(value "total['executions']"),0,$(value "rows.get('flows', 0)"),0"
      grep -qxF "$expected" found || { fail "trace_processor finds something else than $expected in $run.pftrace:"; cat found >&2; }
    done
    ;;

  parquet)
    for run in real sample; do
      trace export $run --format parquet -o $run.parquet --json
      cp out exported
      trace stats $run --json
      "$python" - $run.parquet exported out << 'END' || { fail "$run.parquet holds something else"; cat exported >&2; }
import json, sys
import pyarrow.compute as pc
import pyarrow.parquet as pq

folder, exported, stats = sys.argv[1], json.load(open(sys.argv[2])), json.load(open(sys.argv[3]))
tables = {table["name"]: pq.read_table(f"{folder}/{table['name']}.parquet") for table in exported["tables"]}
for said in exported["tables"]:
    table = tables[said["name"]]
    assert table.num_rows == said["rows"], said
    if "duration_ns" in table.column_names:
        assert (pc.sum(table["duration_ns"]).as_py() or 0) == said["total_ns"], said
tasks, actors = tables["tasks"], tables["actors"]
assert tasks.num_rows > 0 and tasks["name"].null_count == 0 and set(tasks["status"].to_pylist()) == {"done"}
assert pc.sum(pc.subtract(tasks["end_ns"], tasks["start_ns"])) == pc.sum(tasks["duration_ns"])
events = {(actor["rank"], actor["actor"]): actor["events"] for actor in stats["actors"] if actor["actor"] != 0}
assert {(row["rank"], row["actor"]): row["events"] for row in actors.to_pylist()} == events
assert exported["duration_ns"] == max(tables["clocks"]["last_ns"].to_pylist())
assert tasks.schema.metadata[b"tandem.events"] == str(sum(events.values())).encode()
try:
    import polars
except ImportError:
    sys.exit()
frame = polars.read_parquet(f"{folder}/tasks.parquet")
assert frame.height == tasks.num_rows and frame["duration_ns"].sum() == pc.sum(tasks["duration_ns"]).as_py()
END
      [[ -z $(find $run.parquet -name '.columns*') ]] || fail "columns were left behind"
    done
    # Without pyarrow, the message says what to do.
    program bare/python "exec '$python' -S -E \"\$@\""
    if ! bare/python -c 'import pyarrow' 2> /dev/null; then
      "$tandem" trace export sample --format parquet -o x --tandem.python="$PWD/bare/python" > out 2> err &&
        fail "a Python without pyarrow"
      holds err 'scripts/setup --analysis'
    fi
    ;;

  starvz)
    trace export real --format starvz -o real.starvz --json
    holds_json "rows['application'] == rows['tasks'] > 0 and rows['zero'] == 1 and rows['dag'] >= rows['tasks']"
    tasks=$(value "rows['application']")
    trace stats real --json
    holds_json "next(t['events'] for t in o['types'] if t['type'] == 'task.started') == $tasks"
    holds real.starvz/config.yaml '^default:'
    for table in application starpu variable dag colors y zero version; do
      [[ $(head -c 4 real.starvz/$table.parquet) == PAR1 ]] || fail "no $table.parquet"
    done
    [[ -z $(find real.starvz -name '.columns*') ]] || fail "columns were left behind"
    # Without a task that has run, the message says what is missing.
    TANDEM_TRACE=user TANDEM_TRACE_FOLDER=none "$tandem" linalg potrf -n 64 --nb 64 --repetitions 1 --tandem.workers=1 > out 2> err ||
      { fail "the run without tasks"; cat err >&2; }
    "$tandem" trace export none --format starvz -o x > out 2> err && fail "tables of a run without tasks"
    holds err 'no task has run, or none was recorded'
    ;;

  pictures)
    trace stats real --bins 50 -o events
    for picture in events-types.png events-time.png events-time-types.png; do
      [[ $(head -c 4 $picture | tail -c 3) == PNG ]] || fail "no $picture"
    done
    ;;
esac

((failures == 0)) || exit 1
