# shellcheck shell=bash
# tools/command_test_support.sh: shared by the command's tests, which source it: a folder of their own, and failures, with
# which a test ends badly whatever its last command is.
folder=$(mktemp -d)
complaints=$(mktemp)  # also of subshells
trap 'status=$?; end_test' EXIT
cd "$folder" || exit 1  # where no tandem.toml lies
failures=0

fail() {
  echo "FAILED: $1" >&2
  failures=$((failures + 1))
  echo "$1" >> "$complaints"
}

# Removes what the test has made; ends it.
end_test() {
  [[ -s $complaints ]] && ((status == 0)) && status=1
  rm -rf "$folder" "$complaints"
  exit "$status"
}

# program PATH BODY: a shell script.
program() {
  mkdir -p "$(dirname "$1")"
  printf '#!/bin/sh\n%s\n' "$2" > "$1"
  chmod +x "$1"
}

# holds FILE PATTERN: some line of the file matches.
holds() {
  grep -qE -- "$2" "$1" || { fail "no line of $1 is like '$2':"; head -c 2000 "$1" >&2; }
}

# tandem_ends STATUS ARGUMENTS...: checks the status of $tandem; leaves the streams in the files out and err.
tandem_ends() {
  local status=$1
  shift
  timeout 120 "$tandem" "$@" > out 2> err < /dev/null
  local actual=$?
  ((actual == status)) || { fail "tandem $*: exit $actual instead of $status"; cat out err >&2; }
}

# json_holds CONDITION: checks the object o in the file out, which a command printed.
json_holds() {
  python3 -c "import json, sys; o = json.load(open('out')); sys.exit(not ($1))" || { fail "not ($1) of:"; head -c 3000 out err >&2; }
}

# Whether a process runs; a zombie that was not reaped yet does not.
runs() {
  local state
  state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2> /dev/null)
  [[ -n $state && $state != [ZX] ]]
}

# until_true SECONDS COMMAND...: waits until the command succeeds.
until_true() {
  local tries=$(($1 * 20))
  shift
  while ((tries-- > 0)); do
    "$@" && return 0
    sleep 0.05
  done
  return 1
}
is_gone() { ! runs "$1"; }
