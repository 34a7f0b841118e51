#!/usr/bin/env bash
# tests/hosts/ssh_hosts_test.sh: `tandem run` over a real ssh to hosts with a network of their own: network namespaces, each with its sshd.
# Usage: ssh_hosts_test.sh PATH_OF_TANDEM. Skips, and says why, without root, ip or sshd.
set -uo pipefail

tandem=$1
sshd=$(PATH=$PATH:/usr/sbin command -v sshd) || sshd=
ip=$(PATH=$PATH:/usr/sbin command -v ip) || ip=
[[ $(id -u) == 0 ]] || { echo "skipped: network namespaces need root"; exit 0; }
[[ -n $ip ]] || { echo "skipped: no command ip (package iproute2)"; exit 0; }
[[ -n $sshd ]] && command -v ssh > /dev/null || { echo "skipped: no sshd or no ssh (package openssh-server)"; exit 0; }
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../../tools/command_test_support.sh" || exit 1
unset "${!TANDEM_@}"

# --- hosts: the launcher is in a namespace of its own as well, so that nothing outside is touched

name=td$$
hosts=(alpha beta)
daemons=()
# shellcheck disable=SC2317  # called by the trap
end_hosts() {
  local pid host
  for pid in "${daemons[@]}"; do kill "$pid" 2> /dev/null; done
  for host in launcher "${hosts[@]}"; do
    "$ip" netns pids "$name$host" 2> /dev/null | xargs -r kill -9 2> /dev/null
    "$ip" netns del "$name$host" 2> /dev/null
  done
  all_pids=$(cat pid.* 2> /dev/null)
  # shellcheck disable=SC2086  # several
  [[ -z $all_pids ]] || kill -9 $all_pids 2> /dev/null
}
trap 'status=$?; end_hosts; end_test' EXIT

"$ip" netns add "${name}launcher" 2> err || { echo "skipped: no network namespaces: $(cat err)"; exit 0; }
at() { local host=$1; shift; "$ip" netns exec "$name$host" "$@"; }
at launcher "$ip" link add bridge type bridge || exit 1
at launcher "$ip" address add 10.213.0.254/24 dev bridge
at launcher "$ip" link set bridge up
at launcher "$ip" link set lo up
ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -q -t ed25519 -N '' -f host_key || exit 1
cp key.pub authorized
mkdir -p /run/sshd
cat > sshd_config << CONFIG
HostKey $folder/host_key
AuthorizedKeysFile $folder/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
PidFile none
MaxStartups 100
CONFIG
cat > ssh_config << CONFIG
IdentityFile $folder/key
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
BatchMode yes
ConnectTimeout 5
ServerAliveInterval 4
Host gone
  HostName 10.213.0.99
CONFIG
number=0
for host in "${hosts[@]}"; do
  number=$((number + 1))
  "$ip" netns add "$name$host" &&
    "$ip" link add "link_$host" netns "${name}launcher" type veth peer name network netns "$name$host" || exit 1
  at launcher "$ip" link set "link_$host" master bridge up
  at "$host" "$ip" address add "10.213.0.$number/24" dev network
  at "$host" "$ip" link set network up
  at "$host" "$ip" link set lo up
  at "$host" "$sshd" -D -e -f "$folder/sshd_config" 2> "sshd.$host" &
  daemons+=($!)
  printf 'Host %s\n  HostName 10.213.0.%d\n' "$host" "$number" >> ssh_config
done
ssh_to=(ssh -F "$folder/ssh_config")
for host in "${hosts[@]}"; do
  until_true 20 at launcher "${ssh_to[@]}" "$host" true 2> err || { echo "FAILED: no ssh to $host: $(cat err "sshd.$host")" >&2; exit 1; }
done

# run STATUS ARGUMENTS...: tandem run on the launcher's host, within a minute.
run() {
  local expected=$1 status
  shift
  SECONDS=0
  at launcher timeout -k 5 60 "$tandem" run --ssh "${ssh_to[*]}" "$@" > out 2> err < /dev/null
  status=$?
  ((status == expected)) || { fail "tandem run $*: exit $status, not $expected"; head -c 2000 out err >&2; }
}
solve=("$tandem" linalg potrf -n 512 --nb 64 --check --workers 1 --repetitions 1)

run 0 --host alpha:2,beta:2 "${solve[@]}"
holds out '^\[0\] potrf '

# The same host twice: one after the other, as often as it is named, and each rank has a number of its own there.
run 0 -n 4 --host alpha,beta,alpha,beta sh -c 'echo "$SSH_CONNECTION $TANDEM_JOB_LOCAL_RANK" | cut -d" " -f3,5'
(($(cut -d' ' -f2- out | sort | uniq | wc -l) == 4)) || { fail "two ranks of a host have one local number"; cat out >&2; }
run 0 --host alpha,beta,alpha "${solve[@]}"

# A host that does not answer is named.
run 255 -n 4 --host alpha,gone sh -c 'exec sleep 50'
holds err 'no ranks could be started on gone: ssh: connect to host'
((SECONDS < 30)) || fail "a host that does not answer costs $SECONDS s"

# linked ARGUMENTS...: starts a job on both hosts in the background, as $job, and returns when its ranks have worked a second.
linked() {
  rm -f pid.*
  # shellcheck disable=SC2016  # for the ranks' shell
  at launcher timeout -k 5 100 "$tandem" run --ssh "${ssh_to[*]}" --host alpha:2,beta:2 \
    sh -c 'echo $$ > pid.$TANDEM_JOB_RANK; exec "$@"' - "$tandem" linalg potrf --workers 1 "$@" > out 2> err < /dev/null &
  job=$!
  for rank in 0 1 2 3; do until_true 30 test -s pid.$rank || fail "rank $rank does not start over ssh"; done
}
has_worked() {
  local -a stat
  read -r -a stat < <(sed 's/.*) //' "/proc/$1/stat" 2> /dev/null)
  ((${#stat[@]} > 12 && stat[11] + stat[12] > 100))
}
all_gone() { for rank in 0 1 2 3; do is_gone "$(cat pid.$rank)" || return 1; done; }

# A link that is down for 5 s delays a job, and does no more.
linked -n 1024 --nb 64 --check --repetitions 60
until_true 30 has_worked "$(cat pid.2)"
at launcher "$ip" link set link_beta down
sleep 5
at launcher "$ip" link set link_beta up
wait $job || { fail "a link that was down for 5 s ends the job"; head -c 2000 out err >&2; }
holds out '^\[0\] potrf '

# stays_down WHEN: a link that is cut off for good ends the job: nothing hangs, and the message names a rank or the host.
stays_down() {
  at launcher "$ip" link set link_beta down
  SECONDS=0
  wait $job
  local status=$?
  ((status != 0 && status != 124)) || { fail "a link that is cut off $1: exit $status after $SECONDS s"; head -c 2000 err >&2; }
  holds err 'rank [0-3]|beta'
  echo "a link that is cut off $1 ends the job after $SECONDS s: $(grep -m 1 error: err)"
  until_true 60 all_gone || fail "ranks stay on the host that cannot be reached"
  at launcher "$ip" link set link_beta up
}
linked -n 2048 --nb 64 --repetitions 1000
until_true 30 has_worked "$(cat pid.2)"
stays_down "while ranks work"
linked -n 2048 --nb 64 --repetitions 1000
stays_down "while ranks join the job"

((failures == 0))
