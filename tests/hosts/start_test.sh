#!/usr/bin/env bash
# tests/hosts/start_test.sh: ranks on hosts with IPv4, IPv6 or both find each other at once: network namespaces, each with its /etc/hosts.
# Usage: start_test.sh PATH_OF_TANDEM PATH_OF_JOIN_PROBE. Skips, and says why, without root or ip.
set -uo pipefail

tandem=$1
probe=$2
ip=$(PATH=$PATH:/usr/sbin command -v ip) || ip=
[[ $(id -u) == 0 ]] || { echo "skipped: network namespaces need root"; exit 0; }
[[ -n $ip ]] || { echo "skipped: no command ip (package iproute2)"; exit 0; }
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../../tools/command_test_support.sh" || exit 1
unset "${!TANDEM_@}" "${!SLURM_@}"
export TANDEM_JOB_SECRET_FILE=$folder/secret
(umask 077 && echo "a secret of enough characters" > secret)

name=ts$$
# shellcheck disable=SC2317  # called by the trap
end_hosts() {
  local host
  for host in launcher nodea nodeb none; do
    "$ip" netns pids "$name$host" 2> /dev/null | xargs -r kill -9 2> /dev/null
    "$ip" netns del "$name$host" 2> /dev/null
  done
}
trap 'status=$?; end_hosts; end_test' EXIT
"$ip" netns add "${name}launcher" 2> err || { echo "skipped: no network namespaces: $(cat err)"; exit 0; }
"$ip" netns add "${name}none"  # not even its loopback interface is up

# at HOST COMMAND...: there, with the file hosts.HOST as /etc/hosts.
cat > at << AT
#!/bin/sh
host=\$1; shift
exec "$ip" netns exec $name\$host sh -c 'mount --bind $folder/hosts.'\$host' /etc/hosts && exec "\$@"' - "\$@"
AT
# As ssh does it: one line for a shell.
cat > ssh_like << SSH
#!/bin/sh
host=\$1; shift
exec $folder/at \$host sh -c "\$*"
SSH
chmod +x at ssh_like
for host in launcher nodea nodeb none; do echo '127.0.0.1 localhost' > hosts.$host; done
./at launcher true 2> err || { echo "skipped: /etc/hosts cannot be replaced here: $(cat err)"; exit 0; }

./at launcher "$ip" link add bridge type bridge || exit 1
./at launcher "$ip" link set bridge up
./at launcher "$ip" link set lo up
number=0
for host in nodea nodeb; do
  number=$((number + 1))
  "$ip" netns add "$name$host" &&
    "$ip" link add "link_$host" netns "${name}launcher" type veth peer name network netns "$name$host" || exit 1
  ./at launcher "$ip" link set "link_$host" master bridge up
  ./at $host "$ip" link set network up
  ./at $host "$ip" link set lo up
done
# addresses FAMILIES: of all hosts: "4", "6" or "4 6".
addresses() {
  local host device number family
  for host in launcher:bridge:254 nodea:network:1 nodeb:network:2; do
    IFS=: read -r host device number <<< "$host"
    ./at "$host" "$ip" address flush dev "$device" scope global
    for family in $1; do
      case $family in
        4) ./at "$host" "$ip" address add "10.214.0.$number/24" dev "$device" ;;
        6) ./at "$host" "$ip" address add "fd00:9::$number/64" dev "$device" nodad ;;
      esac || return 1
    done
  done
}
# names FAMILIES: what every host's /etc/hosts says, IPv6 first, as glibc's order is.
names() {
  local host
  for host in launcher nodea nodeb; do
    {
      printf '127.0.0.1 localhost\n::1 localhost\n'
      [[ $1 != *6* ]] || printf 'fd00:9::1 nodea\nfd00:9::2 nodeb\nfd00:9::254 launcher\n'
      [[ $1 != *4* ]] || printf '10.214.0.1 nodea\n10.214.0.2 nodeb\n10.214.0.254 launcher\n'
    } > hosts.$host
  done
}
# soon WHAT: since SECONDS was set to 0. A start takes a fraction of this, and what is wrong takes a minute.
soon() { ((SECONDS < 15)) || fail "$1 takes $SECONDS s"; }

# launched WHAT ARGUMENTS...: tandem run of a probe on each of the two hosts.
launched() {
  local what=$1
  shift
  SECONDS=0
  ./at launcher timeout -k 5 100 "$tandem" run --ssh "$folder/ssh_like" --host nodea:1,nodeb:1 "$@" "$probe" > out 2> err < /dev/null ||
    { fail "tandem run on $what: exit $?"; head -c 2000 out err >&2; }
  soon "tandem run on $what"
  (($(grep -c 'found 0 1;' out) == 2)) || { fail "tandem run on $what: not both ranks have joined"; head -c 2000 out err >&2; }
}
# exchanged WHAT: ranks on the two hosts send each other data.
exchange=("$tandem" linalg potrf -n 128 --nb 64 --check --workers 1 --repetitions 1)
exchanged() {
  SECONDS=0
  ./at launcher timeout -k 5 100 "$tandem" run --ssh "$folder/ssh_like" --host nodea:1,nodeb:1 "${exchange[@]}" > out 2> err < /dev/null ||
    { fail "data between $1: exit $?"; head -c 2000 out err >&2; }
  soon "data between $1"
}
# by_variables WHAT MASTER_OF_RANK_0 MASTER_OF_RANK_1: RANK and WORLD_SIZE, rank 0 on nodea, rank 1 on nodeb.
by_variables() {
  local rank host=(nodea nodeb) master=("$2" "$3") pids=()
  SECONDS=0
  rm -f out.?
  for rank in 1 0; do
    RANK=$rank WORLD_SIZE=2 MASTER_ADDR=${master[rank]} MASTER_PORT=7117 \
      ./at "${4:-${host[rank]}}" timeout -k 5 100 "$probe" > out.$rank 2>&1 < /dev/null &
    pids+=($!)
  done
  wait "${pids[@]}"
  soon "the start with $1"
  (($(cat out.? | grep -c 'found 0 1;') == 2)) || { fail "with $1 not both ranks have joined"; head -c 2000 out.? >&2; }
}

addresses '4 6' && names '4 6' || exit 1
launched "dual-stack hosts"
exchanged "dual-stack hosts"
launched "dual-stack hosts, with the launcher's name" --server-address launcher
by_variables "a name of both families" nodea nodea
by_variables "a name and an address" nodea 10.214.0.1
by_variables "an address of IPv4 and a name" 10.214.0.1 nodea
by_variables "an address of IPv6" fd00:9::1 fd00:9::1

# As Debian writes it: the own name is an address of the loopback interface.
echo '127.0.1.1 nodea' > hosts.nodea
by_variables "an own name of 127.0.1.1" nodea nodea
names '4 6'
echo '127.0.1.1 launcher' >> hosts.launcher
launched "hosts of a launcher whose name is 127.0.1.1" --server-address launcher
names '4 6'
by_variables "two texts for one address" localhost 127.0.0.1 nodea

# The first address of the name swallows all packets, without a word.
./at nodeb "$ip" -6 route add fd00:dead::/64 via fd00:9::254
./at nodeb "$ip" route add 10.215.0.0/24 via 10.214.0.254
./at nodea "$ip" address add fd00:dead::1/128 dev network nodad
exchanged "hosts of which one has an address that swallows packets"
./at nodea "$ip" address del fd00:dead::1/128 dev network
printf 'fd00:dead::1 nodea\n10.215.0.1 nodea\n10.214.0.1 nodea\n' > hosts.nodeb
by_variables "addresses that swallow packets" nodea nodea
names '4 6'

# Both protocols are there, and only one reaches the other host.
./at nodeb "$ip" -6 address flush dev network scope global
launched "hosts of which one has lost its IPv6 addresses"
addresses 6 && names 6 || exit 1
launched "hosts with IPv6 alone"
exchanged "hosts with IPv6 alone"
by_variables "a name of IPv6 alone" nodea nodea
addresses 4 && names 4 || exit 1
launched "hosts with IPv4 alone"
./at launcher sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2> /dev/null
./at nodea sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2> /dev/null
launched "hosts without IPv6"
exchanged "hosts without IPv6"
by_variables "a host without IPv6" nodea nodea

# A network that is down is an error at once.
down() {
  local what=$1 pattern=$2
  shift 2
  SECONDS=0
  ./at none timeout -k 5 100 env "$@" > out 2> err < /dev/null && fail "$what: no error"
  soon "$what"
  holds err "$pattern"
}
job=(WORLD_SIZE=2 MASTER_PORT=7117 TANDEM_JOB_SECRET_FILE="$folder/secret")
down "rank 0 without a network" 'network|interface' RANK=0 MASTER_ADDR=127.0.0.1 "${job[@]}" "$probe"
down "rank 0 with a name and without a network" 'network|interface' RANK=0 MASTER_ADDR=nodea "${job[@]}" "$probe"
down "rank 1 without a network" 'network|interface' RANK=1 MASTER_ADDR=10.214.0.1 "${job[@]}" "$probe"
down "rank 1 with a name and without a network" 'no network' RANK=1 MASTER_ADDR=nodea "${job[@]}" "$probe"
down "tandem run without a network" 'no network leads to 127\.0\.0\.1' "$tandem" run -n 2 "$probe"

((failures == 0))
