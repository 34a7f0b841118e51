#!/usr/bin/env bash
# tools/trace/report_test.sh: reports of runs: their tables, how they are requested, and how a browser draws them.
# Usage: trace_report_test.sh tables|stills|asked|browser|million PATH_OF_TANDEM [PATH_OF_WRITE_LARGE_RUN]
set -uo pipefail

part=$1
tandem=$2
write_large_run=${3:-}
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/command_test_support.sh
source "$here/command_test_support.sh" || exit 1
unset "${!TANDEM_@}" "${!SLURM_@}"

# traced FOLDER RANKS SELECTION ARGUMENTS...: a Cholesky factorisation that leaves a trace.
traced() {
  local folder=$1 ranks=$2 selection=$3
  shift 3
  timeout -k 5 60 "$tandem" run -n "$ranks" -- "$tandem" linalg potrf --workers 2 --repetitions 1 "--tandem.trace=$selection" \
    "--tandem.trace.folder=$folder" "$@" > out 2> err < /dev/null || { fail "no trace in $folder"; head -c 2000 out err >&2; }
}
# report STATUS ARGUMENTS...: `tandem trace report` ends with this status.
report() {
  local status=$1
  shift
  timeout -k 5 60 "$tandem" trace report "$@" > out 2> err < /dev/null
  local actual=$?
  ((actual == status)) || { fail "tandem trace report $*: exit $actual instead of $status"; head -c 2000 out err >&2; }
}
# reads FILE PATTERN: the file's tables are right, and their counts match the pattern.
reads() {
  python3 "$here/report/read_report.py" "$1" > out 2> err || { fail "$1 is wrong: $(tail -n 1 err)"; return; }
  holds out "$2"
}

tables() {
  command -v python3 > /dev/null || { echo 'skipped: no python3'; exit 0; }
  traced several 3 all -n 512 --nb 64
  report 0 several
  holds out '^report: several/report.html \([0-9.]+ [KM]iB\); open it in a browser$'
  reads several/report.html " tasks, [1-9][0-9]* messages, [1-9][0-9]* accesses, [0-9]+ arrivals of broadcasts, \
[1-9][0-9]* idle times, [0-9]+ changes of memory, [1-9]"
  traced one 1 all -n 16 --nb 16
  report 0 one -o one.html
  reads one.html '^[1-9][0-9]* tasks, 0 messages'
  # Two runs.
  report 0 several one -o both.html
  [[ $(grep -c 'id="summary-[01]"' both.html) == 2 ]] || fail 'both.html does not hold two runs'
  report 2 several nowhere -o both.html
  holds err 'nowhere: there is no such folder'
  # Traces with only a part recorded, or nothing that the page shows.
  for selection in task worker comm flow; do
    traced "part_$selection" 2 "$selection" -n 256 --nb 64
    report 0 "part_$selection"
    reads "part_$selection/report.html" ' tasks, '
  done
  "$tandem" trace summary part_flow > out 2> err || fail 'no summary without tasks'
  holds out '^note: no task was recorded'
  # The stream of a worker is missing, which only the count in rank.json shows.
  cp -r one part_files
  rm part_files/rank-0000/"$(ls -S part_files/rank-0000 | grep stream_ | head -1)"
  "$tandem" trace summary part_files > out 2> err || fail 'no summary of a trace that lacks a file'
  holds out '^note: events that were written and that no file holds: [1-9][0-9]*; all below is a part of the run'
  # A stream whose events were all lost has no file, as the count in rank.json shows.
  cp -r one all_lost
  sed -i 's/"lost_events": 0/"lost_events": 7/' all_lost/rank-0000/tandem/rank.json
  "$tandem" trace summary all_lost > out 2> err || fail 'no summary of a trace that has lost a stream'
  holds out '^note: events lost: 7; all below is a part of the run'
  "$tandem" trace info all_lost > out 2> err || fail 'no facts of a trace that has lost a stream'
  holds out '^0 on .*, complete .* 7 +0$'
  holds out '^buffers   16MiB; when they are full, new events are lost, and counted below \(trace.when_full=lose\)$'
  # The waits of the program are not known.
  traced part_task_worker 1 task,worker -n 256 --nb 64
  "$tandem" trace summary part_task_worker > out 2> err || fail 'no summary of tasks and workers alone'
  holds out '^note: it is not known when the program waited'
  # Each stream is cut off in the middle.
  local file
  for file in several/rank-*/stream_*; do truncate -s $(($(stat -c %s "$file") * 6 / 10)) "$file"; done
  report 0 several
  reads several/report.html '[1-9][0-9]* tasks, '
  "$tandem" trace summary several > out 2> err || fail 'no summary of a trace that is cut off'
  holds out '^note: files that end too early: [1-9][0-9]*; at least [1-9][0-9]* events are missing'
  report 0 several --json
  holds out '"tasks": [0-9]+'
  # The page loads nothing else.
  grep -qE 'src=|href="http|@import|url\(' several/report.html && fail 'the page loads something'
  report 2 nowhere
  holds err 'nowhere: there is no such folder'
  mkdir empty
  report 2 empty
  report 1 one -o missing/one.html
  holds err 'missing/one.html: cannot be written'
}

# A Python with matplotlib, for the command and for this test.
find_python() {
  for python in "${TANDEM_PYTHON:-}" "$here/../.venv/bin/python" python3 /usr/bin/python3; do
    [[ -n $python ]] && "$python" -c 'import matplotlib, numpy' 2> /dev/null && export TANDEM_PYTHON=$python && return
  done
  echo 'skipped: no Python has matplotlib (python3-matplotlib, or scripts/setup --analysis)'
  exit 0
}
# is_png FILE WIDTH: the file is a PNG of this width in pixels.
is_png() {
  [[ $(head -c 4 "$1" | tail -c 3) == PNG ]] || { fail "$1 is no PNG"; return; }
  local width=$((16#$(head -c 20 "$1" | tail -c 4 | od -An -tx1 | tr -d ' ')))
  ((width == $2)) || fail "$1 is $width pixels wide instead of $2"
}

stills() {
  find_python
  traced one 1 all -n 16 --nb 16
  traced several 3 all -n 512 --nb 64
  report 0 several --pdf all.pdf --svg all.svg --png all.png
  holds out '^picture: all.pdf \([0-9.]+ [KM]iB\)$'
  [[ $(head -c 5 all.pdf) == %PDF- ]] || fail 'all.pdf is no PDF'
  grep -aq /FontFile2 all.pdf || fail 'all.pdf holds no fonts'
  "$TANDEM_PYTHON" -c 'import xml.dom.minidom; xml.dom.minidom.parse("all.svg")' || fail 'all.svg is no SVG'
  is_png all.png 2100
  [[ ! -e several/report.html ]] || fail 'a page was written where pictures were asked for'
  # The pictures show the numbers of the page.
  report 0 several
  "$TANDEM_PYTHON" "$here/report/check_panels.py" several/report.html > out 2> err || fail "panels are wrong: $(tail -n 1 err)"
  holds out '^workers, .*broadcasts'
  # A trace that is written while tasks run.
  traced flushed 1 all -n 1024 --nb 32 --tandem.trace.memory=256KiB --tandem.trace.buffer=16KiB --tandem.trace.when_full=wait
  report 0 flushed
  "$TANDEM_PYTHON" "$here/report/check_panels.py" flushed/report.html > out 2> err || fail "panels are wrong: $(tail -n 1 err)"
  holds out ', tracer, '
  # The panels of the page are those of the command, which has some more.
  report 0 several --panel list
  local panel
  for panel in times kernels durations matrix $(sed -n "s/^  add('\([a-z]*\)',.*/\1/p" "$here/report/page/panels.js"); do
    holds out "^$panel  "
    sed -i "/^$panel  /d" out
  done
  [[ ! -s out ]] || fail "the page does not have the panels $(cut -d ' ' -f 1 out | tr '\n' ' ')"
  report 0 several --png part.png --panel workers,broadcasts,ready --show messages,path,outliers --from 0.0001 --to 0.5 --width 90mm \
    --height 10cm
  is_png part.png 1062
  report 0 several one --pdf both.pdf --panel ready,use --json
  holds out '"panels": "ready, use"'
  report 2 several --pdf none.pdf --panel workers,worker
  holds err "there is no panel 'worker'; there are workers, "
  report 2 several --pdf none.pdf --width 7
  holds err "'7' is no length: 180mm, 18cm or 7in"
  report 2 several --panel workers
  holds err 'add --pdf, --svg or --png FILE'
  report 1 one --pdf none.pdf --from 3 --to 2
  holds err 'there is nothing to draw'
  report 1 one --pdf none.pdf --height 1in
  holds err 'panels need a height of'
  report 0 one --pdf one.pdf -o one.html
  [[ -s one.pdf && -s one.html ]] || fail 'a page that was asked for beside pictures is not there'
  report 1 one --pdf none.pdf --panel broadcasts
  holds err '^tandem: error: the run has nothing for panel broadcasts; it has workers, '
  traced none 1 flow -n 16 --nb 16
  report 1 none --pdf none.pdf
  holds err 'the run has nothing to draw'
  report 2 nowhere --pdf none.pdf
  holds err 'nowhere: there is no such folder'
  [[ ! -e none.pdf ]] || fail 'a picture was written in spite of an error'
  printf '#!/bin/sh\nexec %s -S "$@"\n' "$(command -v python3)" > bare
  chmod +x bare
  TANDEM_PYTHON=$PWD/bare report 1 one --pdf none.pdf
  holds err '^tandem: error: [^ ]* has no numpy: install matplotlib'
}

asked() {
  timeout -k 5 60 "$tandem" run -n 2 --report launched.html -- "$tandem" linalg potrf -n 256 --nb 64 > out 2> err < /dev/null ||
    fail "--report: exit $?"
  holds err 'report: .*/launched.html'
  [[ -s launched.html ]] || fail 'tandem run --report wrote nothing'
  TANDEM_REPORT=variable.html timeout -k 5 60 "$tandem" run -n 2 -- "$tandem" linalg potrf -n 256 --nb 64 > out 2> err < /dev/null
  [[ -s variable.html ]] || fail 'TANDEM_REPORT wrote nothing for tandem run'
  TANDEM_REPORT=alone.html timeout -k 5 60 "$tandem" linalg potrf -n 256 --nb 64 --json > out 2> err < /dev/null
  [[ -s alone.html ]] || fail 'TANDEM_REPORT wrote nothing for a program alone'
  grep -q report: out && fail 'the page is announced where the program prints its results'
  # A trace recorded only for the page is removed; one that the user requested stays.
  [[ -z $(ls -d ./*.trace-* 2> /dev/null) ]] || fail "traces are left: $(ls -d ./*.trace-*)"
  timeout -k 5 60 "$tandem" run -n 2 --report kept.html --tandem.trace.folder="$PWD/kept" --tandem.trace=task -- \
    "$tandem" linalg potrf -n 256 --nb 64 > out 2> err < /dev/null
  [[ -s kept.html && -d kept/rank-0001 ]] || fail 'the trace that was asked for is not there'
  # The status of the job is that of its ranks.
  timeout -k 5 60 "$tandem" run -n 2 --report none.html -- sh -c 'exit 3' > out 2> err < /dev/null
  (($? == 3)) || fail 'the exit status of the ranks is lost'
  holds err 'no report: .*is it a program of Tandem'
}

find_browser() {
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    { echo 'skipped: no Chromium (scripts/setup --browser)'; exit 0; }
}
# drawn FILE: a browser draws the page, and reports the time that it took.
drawn() {
  rm -rf profile
  : > log
  timeout -k 5 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir=profile --enable-logging=stderr \
    --window-size=1500,1200 --remote-debugging-port=0 "file://$PWD/$1#measure" 2>> log > out &
  local process=$!
  until_true 50 grep -qE 'tandem report:|Uncaught|cannot be shown' log
  kill $process 2> /dev/null
  wait $process 2> /dev/null
  grep -o 'tandem report: [^"]*' log || { fail "the browser does not draw $1:"; tail -n 5 log >&2; }
}

browser() {
  find_browser
  traced several 3 all -n 1024 --nb 64
  report 0 several -o several.html && drawn several.html
  holds log '[1-9][0-9]* places tell something; [1-9][0-9]* boxes; ([0-9]+) of \1 pictures have a title; broadcast: Broadcast of .*rootrank [0-9]+size.*recipients[0-9]+tree.*arrivalsafter .*bound.*Arrivals'
  # The predecessors of a task, and the senders of its data.
  holds log 'task: .*waited[0-9.]+ .s for (data of rank [0-9]+|the last of its predecessors)'
  holds log 'task: .*dataread [^;]*\(from rank [0-9]+, [0-9.]+ .?s on its way\)'
  traced one 1 all -n 16 --nb 16
  report 0 one -o one.html && drawn one.html
  traced none 1 flow -n 16 --nb 16
  report 0 none -o none.html && drawn none.html
  # With two kinds of worker: the tasks of each kernel on both, and those in the area bound.
  "$write_large_run" kinds 400 1 5 2 || fail 'no run of two kinds'
  report 0 kinds -o kinds.html && drawn kinds.html
  holds log 'distribution: Tasks of each kernel .*3 cpu2 cudakernelranmeanin boundranmeanin boundgemm[0-9]+[0-9.]+ .s'
  report 0 several one -o both.html && drawn both.html
  report 0 none several -o odd.html && drawn odd.html
}

# took START FILE: prints the time of writing a file, and its size.
took() { python3 -c "print('$2: %.1f s, %.1f MB' % ($EPOCHREALTIME - $1, $(stat -c %s "$2") / 1e6))"; }

# A million tasks: how long a report takes, and its pictures in a browser. Times are printed; only results can fail.
million() {
  find_python
  find_browser
  "$write_large_run" large "${TANDEM_TEST_TASKS:-1000000}" 16 4 || { fail 'no large run'; return; }
  local started=$EPOCHREALTIME
  timeout -k 5 300 "$tandem" trace report large -o large.html --json > out 2> err < /dev/null || { fail 'no report'; cat err >&2; return; }
  took "$started" large.html
  tr -d '\n' < out && echo
  drawn large.html
  started=$EPOCHREALTIME
  timeout -k 5 300 "$tandem" trace report large --pdf large.pdf > out 2> err < /dev/null || { fail 'no picture'; cat err >&2; return; }
  took "$started" large.pdf
  (($(stat -c %s large.pdf) < 4000000)) || fail 'the PDF is larger than 4 MB'
  reads large.html "^[0-9]+ tasks, [1-9][0-9]* messages, .* [1-9][0-9]* arrivals of broadcasts"
}

"$part"
if ((failures > 0)); then
  echo "$failures checks failed" >&2
  exit 1
fi
echo "all checks passed"
