#!/usr/bin/env bash
# tools/contention_command_test.sh: `tandem contention`: models of files and machines, a short campaign of two ranks, pictures.
# Usage: contention_command_test.sh models|measure|pictures PATH_OF_TANDEM FOLDER_OF_SOURCES
set -uo pipefail

part=$1
tandem=$2
sources=$3
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/command_test_support.sh" || exit 1

# contention STATUS ARGUMENTS...: leaves the streams in the files out and err.
contention() {
  local status=$1
  shift
  timeout 100 "$tandem" contention "$@" > out 2> err < /dev/null
  local actual=$?
  ((actual == status)) || { fail "tandem contention $*: exit $actual instead of $status"; head -c 3000 out err >&2; }
}

# campaign MACHINE FOLDER MOST: what a campaign on a machine of the thesis would leave, two repetitions with noise of 1 %.
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
  holds err 'needs measurements with at least 4 different numbers of computing cores, there are 3'
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
  # An interrupted campaign goes on: two measurements and half of a line are lost.
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
  contention 2 measure other --cores 5000
  holds err '--cores 5000: at most [0-9]+ can compute here'
  contention 2 measure other --messages 1parsec
  holds err '--messages: '
  contention 0 page small
  holds out '^page: small/contention.html \('
  holds small/contention.html '<td>primes</td><td>1</td><td>0/0</td><td>4 B</td>'
  holds small/contention.html 'needs measurements with at least 4 different numbers of computing cores, there are 1'
  holds small/contention.html 'Note: .*one host'
  contention 2 page nowhere
  holds err 'nowhere'
  contention 2 fit small
  holds err 'needs measurements with at least 4 different numbers of computing cores, there are 1'
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
  holds err 'there are 2: the picture has no predicted lines'
  contention 2 plot henri
  holds err 'say which file to draw'
}

case $part in
  models | measure | pictures) "$part" ;;
  *) fail "there is no part $part" ;;
esac
((failures == 0)) || exit 1
