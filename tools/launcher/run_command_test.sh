#!/usr/bin/env bash
# tools/launcher/run_command_test.sh: `tandem run` over scripts and a program that joins: what it starts, passes on, and leaves behind.
# Usage: run_command_test.sh PATH_OF_TANDEM PATH_OF_JOIN_PROBE
set -uo pipefail

tandem=$1
probe=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}" "${!SLURM_@}" "${!LSB_@}" PBS_NODEFILE OAR_NODEFILE

# run STATUS ARGUMENTS...: leaves the streams in the files out and err.
run() {
  local status=$1
  shift
  timeout -k 5 60 "$tandem" run "$@" > out 2> err < /dev/null
  local actual=$?
  ((actual == status)) || { fail "tandem run $*: exit $actual instead of $status"; head -c 2000 out err >&2; }
}

is() {
  [[ $(cat "$1") == "$2" ]] || { fail "$1 is not '$2' but:"; head -c 2000 "$1" >&2; }
}

is_stopped() { [[ $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status") == T ]]; }
is_not_stopped() { ! is_stopped "$1"; }
has_lines() { [[ -f $2 ]] && (($(wc -l < "$2") >= $1)); }

# gone_soon FILE...: the processes whose numbers are in the files end soon.
gone_soon() {
  local pid
  for pid in $(cat "$@"); do until_true 5 is_gone "$pid" || fail "process $pid of $* is still there"; done
}

# Ranks find each other, here as many as a laptop can bear, and agree on the secret, which is no argument and no
# variable.
run 0 -n 64 "$probe"
(($(grep -cE '^\[([0-9]+)\] \1 of 64 by tandem run found 0 1 2 .* 63; secret' out) == 64)) ||
  fail "64 ranks do not find each other"
(($(sed 's/.*secret//' out | sort -u | wc -l) == 1)) || fail "the ranks do not agree on secret and job"
[[ ! -s err ]] || fail "there are complaints: $(head -3 err)"
run 0 -n 1 "$probe"
holds out '^0 of 1 by tandem run '
run 0 -n 1 --label "$probe"
holds out '^\[0\] 0 of 1 by tandem run '
# -np is accepted, as by mpirun; after the program's name it is the program's.
run 0 -np 2 sh -c 'echo "$TANDEM_JOB_SIZE $*"' x -np 3
holds out '^\[1\] 2 -np 3$'
run 0 --no-label -x SOME=-np -np 1 sh -c 'echo "$TANDEM_JOB_SIZE $SOME"'
is out '1 -np'
program shows 'env; tr "\0" " " < /proc/$PPID/cmdline; tr "\0" "\n" < /proc/$PPID/environ'
run 0 -n 2 ./shows
holds out '^\[1\] TANDEM_JOB_RANK=1$'
holds out '^\[0\] TANDEM_JOB_LOCAL_SIZE=2$'
grep -qE 'TANDEM_JOB_SECRET=.+' out && fail "the secret is in the environment"

# Through wrappers: shells, programs that close descriptors, and one program after the other.
program wrapper 'sh -c "exec \"\$0\" \"\$@\"" "$@"; exit $?'
run 0 -n 2 ./wrapper "$probe"
holds out '^\[1\] 1 of 2 by tandem run found 0 1;'
closes='import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)'
run 3 -n 2 python3 -c "$closes" "$probe"
holds err 'a wrapper program between `tandem run` and this one closed it; use `tandem run --secret-in-environment`'
run 0 -n 2 --secret-in-environment python3 -c "$closes" "$probe"
holds out '^\[0\] 0 of 2 by tandem run found 0 1;'
program twice '"$1" && "$1" && "$1"'
run 0 -n 3 ./twice "$probe"
(($(grep -c 'by tandem run found 0 1 2;' out) == 9)) || fail "programs one after the other do not find each other"
run 3 -n 2 sh -c 'env -u TANDEM_JOB_SIZE "$0"' "$probe"
holds err 'TANDEM_JOB_SIZE is missing: does a wrapper program remove it'
run 0 -n 2 --server-address 127.0.0.2 "$probe"
holds out 'by tandem run found 0 1;'
run 0 -n 2 "$tandem" --version  # variables of ranks are no unknown options

# Processes that are no member of the job, or a member twice, are refused.
program impostor 'exec 2>&1
if [ $TANDEM_JOB_RANK = 0 ]; then TANDEM_JOB_SECRET=0123456789abcdef0123456789abcdef exec "$1"; fi
exec sleep 30'
run 3 -n 2 ./impostor "$probe"
holds out 'refused, because its proof of the job.s secret is wrong'
holds err "is dropped: its proof of the job's secret is wrong"
run 3 -n 2 sh -c 'export TANDEM_JOB_RANK=1; sleep 0.$TANDEM_JOB_LOCAL_RANK; exec "$0" --wait 5' "$probe"
holds err 'rank 1 has joined already'
run 3 -n 2 sh -c 'exec "$0" --wire $((TANDEM_JOB_RANK + 1))' "$probe"
holds err 'Tandem 0\.[12] with wire format [12], rank [01] runs Tandem 0\.[12] with wire format [12]: .*one build everywhere'
# A rank that ends without having joined ends the job, at once when others have joined, or when the first one joins. A
# rank that has not come yet is named.
leaves='if [ $TANDEM_JOB_RANK = 1 ]; then sleep $1; exit 0; fi; sleep $2; exec "$0" linalg potrf -n 64 --nb 32 --tandem.watchdog=300ms'
run 1 -n 2 sh -c "$leaves" "$tandem" 0 0.3
holds err 'rank 1 ended with exit code 0 before it joined the job'
run 1 -n 3 sh -c "$leaves" "$tandem" 1.5 0
holds err 'rank 1 has not joined the job yet: other ranks wait for it'
holds err 'rank 1 ended with exit code 0 before it joined the job'
run 1 -n 2 sh -c 'if [ $TANDEM_JOB_RANK = 1 ]; then exit 0; fi; exec "$0"' "$probe"
holds err 'rank 1 ended with exit code 0 before it joined the job'
# The rank ends in the second program of a script.
run 1 -n 2 sh -c '"$0"; if [ $TANDEM_JOB_RANK = 1 ]; then exit 0; fi; exec "$0" --wait 1' "$probe"
holds err 'rank 1 ended with exit code 0 before it joined the job'

# A stranger connects to the server.
program stranger 'if [ $TANDEM_JOB_RANK = 0 ]; then python3 -c "
import os, socket
host, port = os.environ[\"TANDEM_JOB_SERVER\"].rsplit(\":\", 1)
idle = [socket.create_connection((host, int(port))) for i in range(20)]
s = socket.create_connection((host, int(port)))
s.sendall(bytes(range(256)) * 20)
try:
  while s.recv(100): pass
except ConnectionError: pass
"; fi; exec "$1"'
run 0 -n 2 ./stranger "$probe"
holds out '^\[0\] 0 of 2 by tandem run found 0 1;'
holds err "rendezvous is dropped: what it sent does not follow the format"

# Output: streams stay apart, lines stay whole, unfinished ones are passed on, bytes are not touched.
run 0 -n 2 sh -c 'echo "to out $TANDEM_JOB_RANK"; echo "to err" >&2; printf unfinished'
is <(sort out) $'[0] to out 0\n[0] unfinished\n[1] to out 1\n[1] unfinished'
is <(sort err) $'[0] to err\n[1] to err'
run 0 -n 1 --no-label sh -c 'printf "plain\n\nno end"'
is out $'plain\n\nno end'
head -c 3000000 /dev/urandom > noise
run 0 -n 1 --no-label cat noise
cmp -s noise out || fail "bytes do not pass unchanged"
run 0 -n 4 sh -c 'i=0; while [ $i -lt 2000 ]; do echo "line $i of $TANDEM_JOB_RANK, which is to stay whole"; i=$((i + 1)); done'
(($(grep -cE '^\[(.)\] line [0-9]+ of \1, which is to stay whole$' out) == 8000 && $(wc -l < out) == 8000)) ||
  fail "lines are torn"
run 0 -n 1 --label sh -c 'head -c 200000 /dev/zero | tr "\0" x; echo'
is out "[0] $(head -c 200000 /dev/zero | tr '\0' x)"
timeout 20 "$tandem" run -n 2 yes 2> /dev/null | head -n 3 > out
statuses=(${PIPESTATUS[*]})
((statuses[0] == 141)) || fail "a reader that left does not end the ranks: ${statuses[0]}"
run 0 -n 1 --label sh -c 'sleep 60 & echo $! > left; setsid sh -c "echo \$\$ > escaped; exec sleep 3" & sleep 0.2; echo done'
is out '[0] done'
gone_soon left
[[ -s escaped ]] || fail "the test of what leaves the group does nothing"

# One rank that speaks alone has no label, and a program can read the JSON that one of several ranks prints.
run 0 -n 1 sh -c 'echo one; echo two >&2'
is out one
is err two
prints='if [ $TANDEM_JOB_RANK = 1 ]; then printf "{\n  \"a\": [1, {\"b\": 2}]\n}\n"; fi; echo note $TANDEM_JOB_RANK >&2'
run 0 -n 3 sh -c "$prints"
python3 -c 'import json; assert json.load(open("out")) == {"a": [1, {"b": 2}]}' || { fail "the object cannot be read"; cat out >&2; }
is <(sort err) $'[0] note 0\n[1] note 1\n[2] note 2'
run 0 -n 3 --label sh -c "$prints"
is out $'[1] {\n[1]   "a": [1, {"b": 2}]\n[1] }'

# Each rank's cores are shown, and set.
run 0 -n 8 --bind numa --map-by package --dry-run --topology 'package:2 numa:2 core:4 pu:1'
is out $'localhost: ranks 0-7
  package 0, NUMA node 0: ++++
  package 0, NUMA node 1: ++++
  package 1, NUMA node 2: ++++
  package 1, NUMA node 3: ++++
  rank 0: hardware threads 0-3
  rank 1: hardware threads 8-11
  rank 2: hardware threads 0-3
  rank 3: hardware threads 8-11
  rank 4: hardware threads 4-7
  rank 5: hardware threads 12-15
  rank 6: hardware threads 4-7
  rank 7: hardware threads 12-15'
run 0 --host alpha:2,localhost,alpha --dry-run true
holds out '^alpha: ranks 0-1,3; not bound: ranks of Tandem divide the cores when they start$'
run 2 -n 2 --bind socket true
holds err '--bind socket: choose one of none, core, numa, package'
allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
run 0 -n 2 --bind core sh -c 'sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status'
(($(nproc) < 2)) || is <(sed 's/^....//' out | sort -u | wc -l) 2
run 0 -n 2 sh -c 'sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status'
is <(sed 's/^....//' out | sort -u) "$allowed"

# Ranks that cannot share memory, since files may not be so large, use the next transport: all of them, or one.
limits='if [ $TANDEM_JOB_RANK -le $1 ]; then trap "" XFSZ; ulimit -f 2048; fi; exec "$0" linalg potrf -n 256 --nb 64 --check'
run 0 -n 2 sh -c "$limits" "$tandem" 1
holds err 'rank [01] reaches rank [01] by tcp instead of shm: '
run 0 -n 3 sh -c "$limits" "$tandem" 0
run 0 -n 2 sh -c "$limits" "$tandem" -1
grep -q 'instead of shm' err && fail "ranks that can share memory do not"

# The hosts of a batch job, when none is named.
printf 'alpha\nalpha\nbeta\n' > nodes
PBS_NODEFILE=$folder/nodes run 0 --ssh "$folder/fake_ssh" --server-address 127.0.0.1 --dry-run true
is <(grep -o '^[a-z]*: ranks* [0-9,-]*' out) $'alpha: ranks 0-1\nbeta: rank 2'
PBS_NODEFILE=$folder/nodes run 0 -n 4 --dry-run true
is <(grep -o '^[a-z]*: ranks* [0-9,-]*' out) $'alpha: ranks 0-1\nbeta: ranks 2-3'
SLURM_JOB_NODELIST='n[1-2],m3' SLURMD_NODENAME=n1 run 0 --dry-run true
is <(grep -o '^[a-z0-9]*: ranks* [0-9,-]*' out) $'localhost: rank 0\nn2: rank 1\nm3: rank 2'
PBS_NODEFILE=$folder/nodes run 0 --host localhost:2 --dry-run true
is <(grep -o '^[a-z]*: ranks* [0-9,-]*' out) 'localhost: ranks 0-1'
OAR_NODEFILE=/nowhere run 2 --dry-run true
holds err 'OAR_NODEFILE names, /nowhere, cannot be read'

# Input goes to rank 0 alone, much of it as well, and its end too.
printf 'one\ntwo' | timeout 20 "$tandem" run -n 3 sh -c 'cat; echo "; end"' > out 2> err
is <(sort out) $'[0] one\n[0] two; end\n[1] ; end\n[2] ; end'
timeout 20 "$tandem" run -n 2 --no-label sh -c 'if [ $TANDEM_JOB_RANK = 0 ]; then cat; fi' < noise > out
cmp -s noise out || fail "input does not pass unchanged"
timeout 20 "$tandem" run -n 1 true < <(yes) || fail "input that nobody reads is in the way"
timeout 20 "$tandem" run -n 2 cat <&- > out || fail "without an input it does not start"

# Input that no rank reads stays for the next reader, as in the loop of a shell.
printf 'a\nb\nc\n' > lines
while read -r line; do timeout 20 "$tandem" run -n 2 --no-label sh -c "[ \$TANDEM_JOB_RANK = 1 ] || echo $line"; done < lines > out 2> err
is out $'a\nb\nc'
cat lines | while read -r line; do timeout 20 "$tandem" run -n 1 echo "$line"; done > out 2> err
is out $'a\nb\nc'
{ timeout 20 "$tandem" run -n 2 --no-label sh -c '[ $TANDEM_JOB_RANK = 1 ] || { read -r line; echo "rank: $line"; }'; cat; } < lines > out 2> err
is out $'rank: a\nb\nc'
{ timeout 20 "$tandem" run -n 2 --stdin none cat; cat; } < lines > out 2> err
is out $'a\nb\nc'
run 2 -n 2 --stdin all true
holds err '--stdin all: choose one of rank0, none'
# The writer of the input notices that rank 0 has closed it, though the rank lives.
(yes 2> yes_err; touch written) | "$tandem" run --timeout 20s -n 1 sh -c 'exec < /dev/null; until [ -e written ]; do sleep 0.05; done' ||
  fail "the launcher keeps an input open that its rank has closed"
rm -f written

# A low hard limit of descriptors is named, with the remedy; one that suffices is enough.
(failures=0; ulimit -n 60; run 0 -n 2 "$probe"; exit "$failures") || fail "60 descriptors are too few for two ranks"
(failures=0; ulimit -n 60; run 126 -n 24 "$probe"; holds err 'may have 60 file descriptors.*ulimit -n'; exit "$failures") ||
  fail "60 descriptors and 24 ranks"

# The exit code is that of the first rank that fails; the others are ended.
run 7 -n 3 sh -c 'echo $$ >> pids; if [ $TANDEM_JOB_RANK = 1 ]; then exit 7; fi; exec sleep 60'
holds err '^tandem: error: rank 1 ended with exit code 7; the other ranks are ended too$'
gone_soon pids
run 137 -n 3 sh -c 'if [ $TANDEM_JOB_RANK = 2 ]; then kill -9 $$; fi; exec sleep 60'
holds err 'rank 2 was ended by signal 9 \(Killed\)'
run 139 -n 1 sh -c 'kill -SEGV $$'
SECONDS=0
rm -f pids
run 5 -n 2 sh -c 'trap "" TERM; echo $$ >> pids; if [ $TANDEM_JOB_RANK = 0 ]; then while :; do sleep 1; done; fi
while [ $(wc -l < pids) != 2 ]; do sleep 0.05; done; exit 5'
((SECONDS >= 1 && SECONDS < 30)) || fail "a rank that ignores SIGTERM is killed after $SECONDS s"
gone_soon pids
run 5 -n 2 sh -c 'if [ $TANDEM_JOB_RANK = 1 ]; then sleep 0.3; exit 5; fi; kill -STOP $$'
run 0 -n 3 sh -c 'exit 0'
rm -f pids
SECONDS=0
run 124 -n 2 --timeout 300ms sh -c 'echo $$ >> pids; exec sleep 60'
holds err 'still running after 300ms \(--timeout\)'
((SECONDS < 20)) || fail "the time limit came after $SECONDS s"
gone_soon pids

# Processes that a rank left running, in its group, are ended with it.
rm -f pids
run 0 -n 2 sh -c 'sleep 60 & echo $! >> pids'
gone_soon pids

# background ARGUMENTS...: `tandem run` in the background; its process is $launcher.
background() {
  rm -f pids signals
  "$tandem" run "$@" > out 2> err < /dev/null &
  launcher=$!
}
ended_with() {
  wait $launcher
  local actual=$?
  ((actual == $1)) || { fail "$2: exit $actual instead of $1"; head -c 2000 out err >&2; }
}

# Signals are passed on.
program listens 'trap "echo USR1 >> signals" USR1; trap "echo USR2 >> signals" USR2; trap "trap : TERM; echo TERM >> signals; exit 4" TERM
echo $$ >> pids; while :; do sleep 0.05; done'
background -n 2 ./listens
until_true 10 has_lines 2 pids || fail "the ranks do not start"
kill -USR1 $launcher
until_true 10 has_lines 2 signals || fail "SIGUSR1 is not passed on"
kill -USR2 $launcher
until_true 10 has_lines 4 signals || fail "SIGUSR2 is not passed on"
kill -TERM $launcher
ended_with 4 "ranks that answer SIGTERM"
holds signals TERM
is signals $'USR1\nUSR1\nUSR2\nUSR2\nTERM\nTERM'

# Signals that are ignored when it starts stay ignored, by the ranks as well.
rm -f pids
nohup "$tandem" run -n 2 sh -c 'kill -HUP $$; echo $$ >> pids; until [ -e go ]; do sleep 0.05; done' > out 2> err < /dev/null &
launcher=$!
until_true 10 has_lines 2 pids || fail "under nohup, SIGHUP ends ranks"
kill -HUP $launcher
touch go
ended_with 0 "SIGHUP under nohup"
rm -f pids go
(trap '' USR1; exec "$tandem" run -n 2 sh -c 'echo $$ >> pids; until [ -e go ]; do sleep 0.05; done') > out 2> err < /dev/null &
launcher=$!
until_true 10 has_lines 2 pids
kill -USR1 $launcher
touch go
ended_with 0 "an ignored SIGUSR1"
rm -f go

background -n 2 sh -c 'echo $$ >> pids; exec sleep 60'
until_true 10 has_lines 2 pids
kill -TSTP $launcher
until_true 10 is_stopped "$launcher" || fail "SIGTSTP does not stop the launcher"
for pid in $(cat pids); do until_true 10 is_stopped "$pid" || fail "SIGTSTP does not stop rank $pid"; done
kill -CONT $launcher
for pid in $(cat pids); do until_true 10 is_not_stopped "$pid" || fail "SIGCONT does not wake rank $pid"; done
kill -TERM $launcher
ended_with 143 "ranks that SIGTERM ends"
[[ ! -s err ]] || fail "a job that was asked to end complains: $(cat err)"
gone_soon pids

# A shell without job control starts background jobs with SIGINT ignored, so that this one is started by Python.
program interrupts 'python3 -c "
import signal, subprocess, sys, time, os
signal.signal(signal.SIGINT, signal.default_int_handler)
p = subprocess.Popen(sys.argv[2:])
while not os.path.exists(\"pids\") or len(open(\"pids\").readlines()) < 2: time.sleep(0.02)
for i in range(int(sys.argv[1])):
  p.send_signal(signal.SIGINT)
  time.sleep(0.3)
sys.exit(p.wait())
" "$@"'
rm -f pids
timeout 20 ./interrupts 1 "$tandem" run -n 2 sh -c 'echo $$ >> pids; exec sleep 60' > out 2> err
(($? == 130)) || fail "SIGINT does not end the ranks with 130"
gone_soon pids
rm -f pids
SECONDS=0
timeout 20 ./interrupts 2 "$tandem" run -n 2 sh -c 'trap "" INT; echo $$ >> pids; exec sleep 60' > out 2> err
((SECONDS < 15)) || fail "a second SIGINT does not end ranks that ignore it"
gone_soon pids

# When the launcher is killed its ranks die, and so do the programs that their wrappers started.
background -n 3 sh -c 'sh -c "echo \$\$ >> pids; sleep 60 & echo \$! >> pids; wait"; true'
until_true 10 has_lines 6 pids || fail "the ranks do not start"
kill -9 $launcher
wait $launcher 2> /dev/null
gone_soon pids

# A rank that is killed from outside ends the job.
background -n 3 sh -c 'echo $$ >> pids; exec sleep 60'
until_true 10 has_lines 3 pids
kill -9 "$(head -1 pids)"
ended_with 137 "a rank that is killed"
gone_soon pids

# A rank that is killed is the reason, not those that fail without it and are seen to end before.
background -n 3 sh -c 'trap "exit 3" USR1; echo $$ > pid.$TANDEM_JOB_RANK; echo $$ >> pids; while :; do sleep 0.05; done'
until_true 10 has_lines 3 pids
kill -STOP $launcher
kill -9 "$(cat pid.1)"
kill -USR1 "$(cat pid.0)" "$(cat pid.2)"
for rank in 0 1 2; do until_true 10 is_gone "$(cat pid.$rank)" || fail "rank $rank does not end"; done
kill -CONT $launcher
ended_with 137 "a rank that is killed, whose death others answer"
holds err 'rank 1 was ended by signal 9'

# The launcher sleeps while nothing happens.
background -n 4 sh -c 'echo $$ >> pids; exec sleep 60'
until_true 10 has_lines 4 pids
sleep 0.2
read -r -a before < <(cut -d' ' -f14,15 "/proc/$launcher/stat")
sleep 1
read -r -a after < <(cut -d' ' -f14,15 "/proc/$launcher/stat")
((after[0] + after[1] - before[0] - before[1] <= 5)) || fail "an idle launcher takes time"
kill -TERM $launcher
wait $launcher

# Other hosts are reached through a program that behaves as ssh does: it joins the arguments and gives them to a shell,
# in another folder.
program fake_ssh 'host=$1; shift; echo "$host" >> hosts_reached
case $host in
  unreachable) echo "ssh: connect to host unreachable port 22: No route to host" >&2; exit 255 ;;
  chatty) echo "Welcome to this machine!" ;;
esac
echo $$ >> ssh_pids
cd / && exec env -i HOME=/ PATH="$PATH" sh -c "$*"'
remote=(--ssh "$folder/fake_ssh" --server-address 127.0.0.1)
run 0 -n 5 --host alpha,chatty:2,localhost "${remote[@]}" "$probe"
(($(grep -c ' of 5 by tandem run found 0 1 2 3 4;' out) == 5)) || fail "ranks of several hosts do not find each other"
holds err 'Welcome to this machine!'
is <(sort hosts_reached) $'alpha\nchatty'
printf 'alpha slots=2\nbeta:1\n' > hosts
run 0 --hostfile hosts "${remote[@]}" -x ONE=1 -x HOME --wdir "$folder" sh -c 'echo "$TANDEM_JOB_LOCAL_RANK $ONE $HOME $PWD"'
is <(sort out) "[0] 0 1 $HOME $folder"$'\n'"[1] 1 1 $HOME $folder"$'\n'"[2] 0 1 $HOME $folder"
run 0 -n 5 --host alpha,beta,alpha,localhost:1 "${remote[@]}" sh -c 'echo "$TANDEM_JOB_LOCAL_RANK of $TANDEM_JOB_LOCAL_SIZE"'
is <(sort out) $'[0] 0 of 3\n[1] 1 of 3\n[2] 0 of 1\n[3] 2 of 3\n[4] 0 of 1'
run 6 -n 4 --host alpha,beta "${remote[@]}" sh -c 'echo $$ >> remote_pids
if [ $TANDEM_JOB_RANK = 2 ]; then exit 6; fi
exec sleep 60'
holds err 'rank 2 ended with exit code 6; the other ranks are ended too'
gone_soon remote_pids ssh_pids
printf 'one\ntwo' | timeout 20 "$tandem" run --host alpha:2 "${remote[@]}" sh -c 'cat; echo "; end"' > out 2> err
is <(sort out) $'[0] one\n[0] two; end\n[1] ; end'
timeout 20 "$tandem" run --host alpha:2 "${remote[@]}" --no-label sh -c 'if [ $TANDEM_JOB_RANK = 0 ]; then cat; fi' < noise > out
cmp -s noise out || fail "input and output of another host do not pass unchanged"
run 255 --host alpha,unreachable "${remote[@]}" sh -c 'exec sleep 60'
holds err '^\[unreachable\] ssh: connect to host unreachable port 22: No route to host$'
holds err 'no ranks could be started on unreachable: ssh: connect to host'
run 255 --host alpha "${remote[@]}" --remote-tandem /nowhere/tandem true
holds err 'no ranks could be started on alpha: .*not found'
run 127 --host alpha:2 "${remote[@]}" no_such_program
holds err 'on alpha: there is no program no_such_program in PATH'
run 127 --host alpha --ssh /nowhere/ssh --server-address 127.0.0.1 true
holds err 'there is no program /nowhere/ssh'
rm -f remote_pids
background --host alpha:2,beta:1 "${remote[@]}" sh -c 'echo $$ >> remote_pids; sleep 60; true'
until_true 10 has_lines 3 remote_pids || fail "the ranks on other hosts do not start"
kill -9 $launcher
wait $launcher 2> /dev/null
gone_soon remote_pids ssh_pids
rm -f remote_pids ssh_pids
background --host alpha:2,beta:1 "${remote[@]}" sh -c 'echo $$ >> remote_pids; sleep 60; true'
until_true 10 has_lines 3 remote_pids
kill -9 "$(head -1 ssh_pids)"
ended_with 255 "a connection that breaks"
holds err 'the connection to (alpha|beta) ended while ranks ran there'
gone_soon remote_pids
run 1 --host no.such.host.invalid --ssh "$folder/fake_ssh" true
holds err 'it is not known at which address no.such.host.invalid reaches this host .*--server-address'

# Options of Tandem before the program are passed to the ranks; those after it are the program's.
run 0 -n 1 --label --tandem.log=info sh -c 'echo "$TANDEM_LOG $*"' x --tandem.log=debug -n 3 --help
is out '[0] info --tandem.log=debug -n 3 --help'
run 0 -n 1 --label -- sh -c 'echo "$TANDEM_LOG $*"' x --tandem.log=debug --any
is out '[0]  --tandem.log=debug --any'

# Wrong uses are explained.
run 2 -n 0 true
holds err 'error: -n 0: a job has from 1 to'
run 2 -n -3 true
run 2 -n x true
run 2 true
holds err 'how many ranks\? give -n N'
run 2 -n 2
holds err 'which program\?'
run 2 -n 2 --bogus true
holds err '^tandem: error: --bogus is not an option of tandem run; see tandem run --help$'
run 2 -n 2 --lable true
holds err '^tandem: error: --lable is not an option of tandem run \(did you mean --label\?\)'
run 2 -np x true
holds err "^tandem: error: tandem run: -n,--np: 'x' is not a whole number"
run 2 -n 5 --host a:2,b:2 true
holds err 'the hosts take 4 ranks, not 5'
run 2 -n 2 --host a,,b true
run 2 --hostfile /nowhere true
holds err 'the host file /nowhere cannot be read'
run 2 -n 1 -x NOT_SET_ANYWHERE true
holds err '-x NOT_SET_ANYWHERE: the variable is not set here'
run 2 -n 1 --timeout 10 true
run 127 -n 2 no_such_program_at_all
holds err '^tandem: error: there is no program no_such_program_at_all in PATH$'
program hidden 'true'
run 127 -n 1 hidden
holds err 'write ./hidden'
run 127 -n 1 ./nowhere/at/all
run 126 -n 1 "$folder/noise"
holds err 'noise cannot be executed: Permission denied'
run 127 -n 1 --wdir /nowhere true
holds err 'the folder /nowhere cannot be entered'
run 0 --help
holds out '--server-address HOST'
holds out 'a second SIGINT'

((failures == 0)) || exit 1
