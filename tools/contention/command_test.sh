#!/usr/bin/env bash
# tools/contention/command_test.sh: `tandem contention`: models of files and machines, a short campaign of two ranks, pictures.
# Usage: contention_command_test.sh models|measure|applications|pictures PATH_OF_TANDEM FOLDER_OF_SOURCES
set -uo pipefail

part=$1
tandem=$2
sources=$3
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1

# contention STATUS ARGUMENTS...: leaves the streams in the files out and err.
contention() {
  local status=$1
  shift
  timeout 100 "$tandem" contention "$@" > out 2> err < /dev/null
  local actual=$?
  ((actual == status)) || { fail "tandem contention $*: exit $actual instead of $status"; head -c 3000 out err >&2; }
}

# campaign MACHINE FOLDER MOST: writes what a campaign on a machine of the thesis would leave, two repetitions with
# noise of 1 %.
campaign() {
  timeout 60 "$tandem" contention predict "$1" --model thesis --json > predicted.json || fail "predict $1"
  mkdir -p "$2"
  python3 - "$2" "$3" << 'END'
import json, random, sys
folder, most = sys.argv[1], int(sys.argv[2])
rows = [row for row in json.load(open("predicted.json"))["predictions"] if row["cores"] <= most]
random.seed(1)
noisy = lambda value: f"{value * random.gauss(1, 0.01):.6g}"
nodes = 1 + max(row["computation_node"] for row in rows)
with open(f"{folder}/samples.csv", "w") as out:
    out.write("kernel,cursor,message_bytes,computation_node,communication_node,cores,step,repetition,computation_mb_s,iterations_per_s,"
              "communication_mb_s,latency_us,cpu_share\n")
    for repetition in range(2):
        seen = set()
        for row in rows:
            comp, comm, n = row["computation_node"], row["communication_node"], row["cores"]
            if ("comm", comm) not in seen:
                out.write(f"none,1,67108864,,{comm},0,communication,{repetition},,,{noisy(row['communication_alone_mb_s'])},,\n")
            if (comp, n) not in seen:
                out.write(f"memset,1,0,{comp},,{n},computation,{repetition},{noisy(row['computation_alone_mb_s'])},1,,,1\n")
            seen |= {("comm", comm), (comp, n)}
            out.write(f"memset,1,67108864,{comp},{comm},{n},both,{repetition},{noisy(row['computation_mb_s'])},1,"
                      f"{noisy(row['communication_mb_s'])},,1\n")
json.dump({"nodes_per_socket": nodes // 2, "cores_per_socket": most, "protocol": {}}, open(f"{folder}/campaign.json", "w"))
END
}

models() {
  contention 0 predict henri --model thesis --placement 1,1 --cores 18 --json
  json_holds "abs(o['predictions'][0]['communication_mb_s'] - 0.761 * 11459.6) < 1e-6 and len(o['predictions']) == 1"
  contention 0 predict henrisubnuma --cores 3,9
  [[ $(grep -cE '^ +[0-3] +[0-3] +[39] ' out) == 32 ]] || fail "henrisubnuma has 16 placements: $(cat out)"
  contention 0 place
  [[ $(grep -cE '^[a-z]+ +[0-9]+ +0 ' out) == 18 ]] || fail "nine machines, of one socket and of both: $(cat out)"
  holds out '^diablo +32 +0 +11\.74 +70\.11 +1 +21\.66 +70\.09 +\+84\.5 +-0\.0$'
  contention 0 place henri --network-node 1 --json
  json_holds "[p['usual_node'] for p in o['places']] == [1, 1] and abs(o['places'][0]['usual']['communication_mb_s'] - 0.915 * 11459.6) < 1e-6"
  contention 2 place henri --network-node 2
  holds err 'henri has 2 NUMA nodes: --network-node must name one of them'
  # Programs use the models on an imaginary machine, and with bound memory.
  HWLOC_SYNTHETIC="numa:2 core:2 pu:1" timeout 60 "$tandem" machine --tandem.comm.progress_core=model \
    --tandem.reserve_core --tandem.contention=diablo > out 2> err ||
    fail "machine with a model: $(cat err)"
  holds out '^messages +what messages bring lies on NUMA node 1: .* has a free core of NUMA node 1, where that memory is$'
  [[ $(grep -cE '^ +[12]  core [12]$' out) == 2 ]] || fail "core 3 is not reserved: $(cat out)"
  if (($(nproc) >= 2)); then
    timeout 100 "$tandem" run -n 2 "$tandem" linalg potrf -n 512 --nb 64 --check --tandem.message_node=0 \
      --tandem.comm.progress_core=model --tandem.log=info > out 2> err ||
      fail "two ranks: $(cat err)"
    holds err '^\[1\] tandem: info: option comm.progress_core: '
    timeout 100 "$tandem" run -n 2 "$tandem" linalg potrf -n 512 --nb 64 --tandem.message_node=all > out 2> err && fail "message_node=all is taken"
    holds err "option message_node: 'all' is neither auto nor off, nor one of this host's NUMA nodes: "
  fi
  contention 2 predict peabody
  holds err 'peabody: neither a file, nor a folder, nor one of the machines billy, bora, '
  contention 2 predict henri --placement 0,2
  holds err 'there are 2 NUMA nodes: --placement must name two of them'
  contention 2 predict henri --intensity 3
  holds err '--intensity needs the peak of a core'

  campaign henri henri 18
  contention 0 fit henri --json -o henri.json
  json_holds "abs(o['threshold']['remote']['alpha'] - 0.761) < 0.02 and abs(o['threshold']['local']['b_comp_seq_mb_s'] / 4455.4 - 1) < 0.02"
  json_holds "o['threshold']['intervals']['remote']['n_par_max'][0] <= 5 <= o['threshold']['intervals']['remote']['n_par_max'][1]"
  json_holds "o['threshold']['errors_percent']['average'] < 2 and o['soft']['errors_percent']['average'] < 2 and o['kernel'] == 'memset'"
  contention 0 fit henri --hold-out
  holds out '^mean errors \(%\)'
  holds out '^  alpha +0\.[0-9]{3} \[0\.[0-9]{3}, [01]\.[0-9]{3}\] +0\.[0-9]{3} \['
  # A file of models predicts what the campaign predicts; the campaign adds intervals.
  contention 0 predict henri.json --cores 18 --json
  mv out of_file
  contention 0 predict henri --cores 18 --json
  json_holds "all(abs(a['communication_mb_s'] - b['communication_mb_s']) < 1e-6 * b['communication_mb_s'] and 'intervals' not in b and
    a['intervals']['communication_mb_s'][0] <= a['communication_mb_s'] <= a['intervals']['communication_mb_s'][1]
    for a, b in zip(o['predictions'], json.load(open('of_file'))['predictions']))"
  # A program reads the models of this host unless it is told not to.
  export XDG_CACHE_HOME=$PWD/cache
  campaign henrisubnuma subnuma 18
  contention 0 fit subnuma --install
  holds out 'cache/tandem/contention/.*\.toml: programs read it from now on; with 18 workers, at most (9|10|11) run memory-bound tasks, and [5-8] '
  grep -q '^alpha = 0\.[0-9]*$' cache/tandem/contention/*.toml || fail "no parameters: $(cat cache/tandem/contention/*)"
  cg() { timeout 60 "$tandem" linalg cg -n 64 --nb 16 --tandem.bind=false --tandem.workers=18 --tandem.log=info "$@" > out 2> err < /dev/null; }
  cg || fail "cg with limits: $(cat err)"
  holds err 'memory contention \(.*\.toml\): at most (9|10|11) of 18 workers run memory-bound tasks, and [5-8] while an urgent message is under way'
  cg --tandem.contention=off || fail "cg without limits: $(cat err)"
  grep -q 'memory contention' err && fail "limits, though off: $(cat err)"
  sed -i 's/^alpha = .*/alpha = 7/' cache/tandem/contention/*.toml
  cg || fail "cg with a wrong file: $(cat err)"
  holds err 'memory contention is left out of account: .*alpha of a model of memory contention must be between 0 and 1'
  cg --tandem.contention=henry && fail "cg on henry"
  holds err "option contention: 'henry' is neither auto nor off"
  unset XDG_CACHE_HOME
  contention 0 fit henri/samples.csv --nodes-per-socket 1 --json
  json_holds "o['nodes'] == 2 and o['cores'] == 18"

  sed -i 's/"alpha": [0-9.]\+/"alpha": 7/' henri.json
  contention 2 predict henri.json
  holds err 'henri.json: local: alpha of a model of memory contention must be between 0 and 1'
  echo '{}' > empty.json
  contention 1 predict empty.json
  holds err 'empty.json: nodes is missing or wrong'
  contention 2 fit henri --kernel copy
  holds err 'the campaign has no kernel copy; there are memset'
  campaign henri short 3
  contention 2 fit short
  holds err 'needs measurements with at least 4 different numbers of computing cores, and has 3'
  echo 'memset,1,0,0,,2,computation,fast,1,1,,,' >> short/samples.csv
  contention 1 fit short
  holds err 'short/samples.csv, line [0-9]+: repetition is wrong'
  contention 2 fit nowhere
  holds err 'nowhere: cannot be read'
}

measure() {
  local options=(--cores 1 --seconds 0.02 --array 1MiB --messages 1MiB,4 --kernels memset,primes,triad --cursors 1,16)
  contention 0 measure small "${options[@]}" --repetitions 1
  holds err '^\[10/14\] .*left$'
  holds out '^memset +1 +0/0 +1 MiB +[0-9.]+ \[[0-9.]+, [0-9.]+\]'
  holds out '^triad x 16 +1 +0/0 +1 MiB '
  holds out '^primes +1 +0/0 +4 B .* it/s .* us'
  [[ $(wc -l < small/samples.csv) == 15 ]] || fail "not 14 samples: $(cat small/samples.csv)"
  python3 - << 'END' || fail "samples that cannot be: $(cat small/samples.csv)"
import csv, json
rows = list(csv.DictReader(open("small/samples.csv")))
assert all(float(row["communication_mb_s"]) > 50 for row in rows if row["step"] != "computation" and row["message_bytes"] == "1048576")
assert all(0 < float(row["cpu_share"]) <= 1 for row in rows if row["step"] != "communication")
assert all(0.05 < float(row["latency_us"]) < 1e5 for row in rows if row["message_bytes"] == "4")
assert all(float(row["computation_mb_s"]) > 50 for row in rows if row["kernel"] in ("memset", "triad"))
assert all(row["computation_mb_s"] == "" and float(row["iterations_per_s"]) > 1 for row in rows if row["kernel"] == "primes")
about = json.load(open("small/campaign.json"))
assert about["protocol"]["one_host"] and about["nodes_per_socket"] >= 1 and any("one host" in note for note in about["notes"])
END
  # An interrupted campaign is resumed: two measurements and half of a line are lost.
  head -n 13 small/samples.csv > kept
  cp kept small/samples.csv
  printf 'memset,1,0,0' >> small/samples.csv
  contention 0 measure small "${options[@]}" --repetitions 1 --json
  json_holds "o['benchmark'] == 'contention' and len(o['results']) == 4 * 8 and all(r['n'] == 1 for r in o['results'])"
  holds err '^12 measurements of 14 are there already'
  cmp -s kept <(head -n 13 small/samples.csv) || fail "what was measured before has changed"
  [[ $(wc -l < small/samples.csv) == 15 ]] || fail "not 14 samples again: $(cat small/samples.csv)"
  contention 0 measure small "${options[@]}" --repetitions 2 --json
  json_holds "all(r['n'] == 2 for r in o['results'])"
  contention 2 measure small --cores 1 --seconds 0.03 --repetitions 1
  holds err 'small holds another campaign: choose another folder, or give the options of that one'
  contention 0 measure shorter --shortened --samples --cores 1 --seconds 0.02 --array 1MiB --messages 64KiB --repetitions 1
  grep -q '"shortened": true' shorter/campaign.json || fail "--shortened has no effect"
  contention 0 measure unused --buffers fresh --kernels copy --cores 1 --seconds 0.02 --array 1MiB --messages 64KiB,4 --repetitions 1
  awk -F, 'NR > 1 && ($9 $10 $11 $12 == "" || $11 == "0" || $12 == "0") { exit 1 } END { exit NR != 6 }' unused/samples.csv ||
    fail "not 5 samples: $(cat unused/samples.csv)"
  grep -q '"buffers": "fresh"' unused/campaign.json || fail "--buffers has no effect"
  contention 2 measure unused --kernels copy --cores 1 --seconds 0.02 --array 1MiB --messages 64KiB,4 --repetitions 1
  holds err 'unused holds another campaign'
  contention 2 measure other --buffers new
  holds err '--buffers'
  contention 2 measure other --cores 5000
  holds err '--cores 5000: at most [0-9]+ can compute here'
  contention 2 measure other --messages 1parsec
  holds err '--messages: '
  contention 0 page small
  holds out '^page: small/contention.html \('
  holds small/contention.html '<td>primes</td><td>1</td><td>0/0</td><td>4 B</td>'
  holds small/contention.html 'needs measurements with at least 4 different numbers of computing cores, and has 1'
  holds small/contention.html 'Note: .*one host'
  cp -r small disturbed
  awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "cpu_share") at = i } NR == 2 { $at = 0.125 } 1' \
    small/samples.csv > disturbed/samples.csv
  contention 0 page disturbed
  holds disturbed/contention.html 'Note: other programs ran on the computing cores: .* 12 % at least'
  contention 2 page nowhere
  holds err 'nowhere'
  contention 2 fit small
  holds err 'needs measurements with at least 4 different numbers of computing cores, and has 1'
}

applications() {
  local kernels=(--cores 1 --seconds 0.02 --array 1MiB --messages 64KiB --repetitions 1)
  local options=("${kernels[@]}" --applications cg,gemm --workers 1,2 --gemm-order 256 --cg-order 256 --cg-iterations 10 --nb 64)
  (($(nproc) >= 2)) || { echo "skipped: two workers need two cores"; exit 0; }
  # A campaign of kernels may get applications later.
  contention 0 measure both "${kernels[@]}"
  [[ ! -e both/applications.csv ]] || fail "applications that nobody asked for"
  contention 0 measure both "${options[@]}"
  holds err '^\[4/4\] gemm on 2 workers of each rank: [0-9.]+ s, .* 0 s left$'
  holds out '^cg +2 +[0-9.]+ \[[0-9.]+, [0-9.]+\]'
  python3 - << 'END' || fail "runs that cannot be: $(cat both/applications.csv both/campaign.json)"
import csv, json
rows = list(csv.DictReader(open("both/applications.csv")))
assert [(row["application"], row["workers"]) for row in rows] == [("cg", "1"), ("cg", "2"), ("gemm", "1"), ("gemm", "2")]
assert all(float(row["seconds"]) > 0 and float(row["gflop_s"]) > 0 for row in rows)
assert all((row["iterations_per_s"] != "") == (row["application"] == "cg") for row in rows)
# Messages do not change with the number of workers; a rank needs what the other one has of a matrix, or of vectors.
for application in ("cg", "gemm"):
    first, second = [row for row in rows if row["application"] == application]
    assert first["messages"] == second["messages"] and first["message_bytes"] == second["message_bytes"]
    assert int(first["messages"]) > 10 and float(first["delivered_mb_s"]) > 0
assert int(rows[2]["message_bytes"]) >= 2 * 8 * 64 * 64
about = json.load(open("both/campaign.json"))["applications"]
assert about["protocol"] == {"applications": ["cg", "gemm"], "workers": [1, 2], "tile": 64, "cg_order": 256, "gemm_order": 256, "cg_iterations": 10}
stalled = [row["stalled"] for row in rows]
assert all(0 <= float(share) <= 1 for share in stalled) if stalled[0] else any("stalled" in note for note in about["notes"])
END
  # An interrupted campaign is resumed: a run and half of a line are lost.
  head -n 4 both/applications.csv > kept
  cp kept both/applications.csv
  printf 'gemm,2,0' >> both/applications.csv
  contention 0 measure both "${options[@]}" --json
  holds err '^3 runs of 4 are there already'
  json_holds "{r['params']['application'] for r in o['results'] if r['name'] == 'delivered_bandwidth'} == {'cg', 'gemm'}"
  json_holds "len([r for r in o['results'] if r['name'] == 'application_rate']) == 4 and len([r for r in o['results'] if r['name'] == 'computation']) == 1"
  cmp -s kept <(head -n 4 both/applications.csv) || fail "what was measured before has changed"
  [[ $(wc -l < both/applications.csv) == 5 ]] || fail "not 4 runs again: $(cat both/applications.csv)"
  contention 0 measure both "${kernels[@]}"
  [[ $(wc -l < both/applications.csv) == 5 ]] || fail "a campaign without applications has lost them"
  contention 2 measure both "${kernels[@]}" --applications cg --workers 1
  holds err 'both holds another campaign of applications: choose another folder, or give the options of that one: .*"tile":64'
  contention 2 measure other "${kernels[@]}" --workers 1
  holds err '--workers is for applications'
  contention 2 measure other "${kernels[@]}" --applications cg --workers 5000
  holds err '--workers 5000: from 1 to [0-9]+, the cores that this process may use'
  contention 2 measure other "${kernels[@]}" --applications cg --cg-order 64 --nb 64
  holds err '--cg-order 64 with tiles of 64 \(--nb\) makes one tile'
  # Ranks that another launcher has started.
  local port
  port=$(python3 -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
  (
    # Rank 0 may be gone before rank 1 meets it.
    export TANDEM_COMM_START_TIMEOUT=2s
    export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=2 TANDEM_JOB_SECRET=0123456789abcdef0123456789abcdef
    SECONDS=0
    RANK=1 contention 2 measure other "${kernels[@]}"  # nobody else comes
    ((SECONDS < 30)) || fail "the limit of starting is another one"
    RANK=1 timeout 100 "$tandem" contention measure other "${kernels[@]}" --applications cg > other.out 2>&1 < /dev/null &
    RANK=0 contention 2 measure other "${kernels[@]}" --applications cg
    wait
    ((failures == 0))
  ) || fail "a job of another launcher is not refused"
  holds err '--applications needs ranks that tandem run has started'
  contention 2 measure other "${kernels[@]}" --applications lu
  holds err 'lu'
  [[ ! -e other ]] || fail "a folder for a campaign that was refused"
  contention 0 page both
  holds both/contention.html '<h2>Applications</h2>'
  holds both/contention.html '<td>gemm</td><td>2</td>'
  holds both/contention.html 'Note: applications: '
  echo 'lu,1,0,1,1,,0,0,,,' >> both/applications.csv
  contention 1 page both
  holds err 'both/applications.csv, line 6: application is wrong'
}

pictures() {
  for python in "${TANDEM_PYTHON:-}" "$sources/.venv/bin/python" python3 /usr/bin/python3; do
    [[ -n $python ]] && "$python" -c "import matplotlib" 2> /dev/null && break
    python=
  done
  [[ -n $python ]] || { echo "skipped: no Python has matplotlib (scripts/setup --analysis)"; exit 0; }
  export TANDEM_PYTHON=$python
  campaign henri henri 18
  contention 0 plot henri --svg henri.svg --pdf henri.pdf
  holds out '^picture: henri.pdf \('
  [[ $(head -c 5 henri.pdf) == %PDF- ]] || fail "henri.pdf is no PDF"
  "$python" - << 'END' || fail "henri.svg is not as it should be"
import xml.etree.ElementTree as tree
root = tree.parse("henri.svg").getroot()
axes = [e.get("id") for e in root.iter("{http://www.w3.org/2000/svg}g") if (e.get("id") or "").startswith("axes_")]
assert len(axes) == 8, axes  # four placements, two axes each
END
  contention 0 plot henri --stacked --png henri.png
  contention 0 plot dahu --svg dahu.svg  # without measurements
  contention 0 page henri -o henri.html
  [[ $(grep -c '<svg' henri.html) == 1 ]] || fail "henri.html has not one picture"
  holds henri.html 'alpha\)</td><td>0\.[0-9]+ \['
  "$python" -c "import html.parser; html.parser.HTMLParser().feed(open('henri.html').read())" || fail "henri.html is no HTML"
  # Too few cores for a fit: points alone.
  campaign henri short 2
  contention 0 plot short --svg short.svg
  holds err 'and has 2: the picture has no predicted lines'
  contention 2 plot henri
  holds err 'say which file to draw'
  contention 2 plot henri --applications --svg none.svg
  holds err 'henri has no applications: measure them by'
  { echo application,workers,repetition,seconds,gflop_s,iterations_per_s,messages,message_bytes,send_mb_s,delivered_mb_s,stalled
    echo cg,1,0,2,10,20,640,1310720,,900,0.5
    echo cg,2,0,1,20,40,640,1310720,,300,0.7
    echo gemm,1,0,2,30,,64,33554432,4000,3900,0.1
    echo gemm,2,0,1,60,,64,33554432,3600,3500,; } > henri/applications.csv
  contention 0 plot henri --applications --svg applications.svg
  holds applications.svg 'gemm: 1 is 4 GB/s'
  contention 2 plot henri --applications --stacked --svg none.svg
  holds err '--stacked is for kernels'
  contention 0 page henri -o henri.html
  [[ $(grep -c '<svg' henri.html) == 2 ]] || fail "henri.html has not two pictures"
}

case $part in
  models | measure | applications | pictures) "$part" ;;
  *) fail "there is no part $part" ;;
esac
((failures == 0)) || exit 1
