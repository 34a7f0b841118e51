#!/usr/bin/env bash
# tandem/comm/bootstrap/join_test.sh: a program that joins, started by mpirun and by the variables of other launchers.
# Usage: join_test.sh PATH_OF_JOIN_PROBE
set -uo pipefail

probe=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export HOME=$folder
failures=0

fail() {
  echo "FAILED: $1" >&2
  cat out err >&2
  failures=$((failures + 1))
}

# Prints a port at which no process listens now.
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# found N PATTERN: N lines of out match the pattern, and all lines have one secret and one job.
found() {
  (($(grep -cE -- "$2" out) == $1)) || fail "not $1 lines like '$2'"
  (($(sed 's/.*secret//' out | sort -u | wc -l) == 1)) || fail "the ranks do not agree on secret and job"
}

# RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, and the user's own secret, which does not exist yet.
port=$(free_port)
for rank in 3 1 2 0; do
  RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$probe" >> out 2>> err &
done
wait
found 4 'by environment found 0 1 2 3;'
[[ $(stat -c %a .tandem/secret) == 600 ]] || fail "the user's secret is not private"

# A secret that others can read is refused.
chmod 644 .tandem/secret
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$probe" > out 2> err &&
  fail "it accepted a secret that others can read"
grep -q 'may be read by others' err || fail "it does not say that others can read the secret"

if command -v mpirun > /dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # In builds with the leak sanitizer: libpmix forgets a few bytes of its own.
  echo 'leak:libpmix' > leaks
  export LSAN_OPTIONS=suppressions=$folder/leaks:print_suppressions=0
  if timeout 60 mpirun --oversubscribe -n 1 true > out 2> err; then
    timeout 60 mpirun --oversubscribe -n 4 "$probe" > out 2> err
    status=$?
    if grep -q 'install libpmix-dev' err; then
      echo "this build has no PMIx, and says so under mpirun"
    else
      ((status == 0)) || fail "under mpirun: exit code $status"
      found 4 'by pmix found 0 1 2 3;'
      # A rank that publishes late, after it has joined: the others wait for it.
      late='if [ "$PMIX_RANK" = 1 ]; then exec "$0" --wait 1; fi; exec "$0"'
      timeout 60 mpirun --oversubscribe -n 3 sh -c "$late" "$probe" > out 2> err
      found 3 'by pmix found 0 1 2;'
      # A rank that ends before it joined: mpirun does not mind when the others have not joined either by then.
      leaves='if [ "$PMIX_RANK" = 2 ]; then exit 0; fi; sleep 1; exec "$0"'
      timeout 60 mpirun --oversubscribe -n 3 sh -c "$leaves" "$probe" > out 2> err &&
        fail "a job without rank 2 ends well"
      grep -q 'rank 2 has ended before it joined the job: rank [01] ends the job' err || fail "rank 2 is not named"
      timeout 60 mpirun --oversubscribe -n 2 sh -c 'exec "$0" --wire $((PMIX_RANK + 1))' "$probe" > out 2> err &&
        fail "builds of different wire formats speak to each other"
      grep -q 'Tandem 0.1 with wire format 1' err && grep -q 'Tandem 0.2 with wire format 2' err ||
        fail "the versions are not named"
    fi
  else
    echo "mpirun does not work here: skipped" >&2
  fi
else
  echo "no mpirun: skipped" >&2
fi

((failures == 0)) || exit 1
