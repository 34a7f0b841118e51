#!/usr/bin/env bash
# tools/trace/damage_test.sh: on a damaged trace every subcommand ends by itself, with a status and a message.
# Usage: trace_damage_test.sh PATH_OF_TANDEM PATH_OF_WRITE_SAMPLE_TRACE FIRST_SEED [SEEDS]; without SEEDS, TRACE_DAMAGE_COUNT of them
# A seed that fails is named: trace_damage_test.sh TANDEM WRITE_SAMPLE_TRACE SEED 1 plays it alone.
set -uo pipefail

tandem=$1
write_sample=$2
first_seed=$3
seeds=${4:-${TRACE_DAMAGE_COUNT:-1}}
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1
unset "${!TANDEM_@}"

# The traces are real runs of one rank and of three, a sample with all kinds of records, and one killed rank.
TANDEM_TRACE=all TANDEM_TRACE_FOLDER=one "$tandem" linalg potrf -n 256 --nb 64 --repetitions 1 --tandem.workers=2 > out 2>&1 ||
  fail "the run of one rank"
"$tandem" run -n 3 -x TANDEM_TRACE=all -x TANDEM_TRACE_FOLDER="$folder/several" "$tandem" linalg potrf -n 256 --nb 64 \
  --repetitions 1 > out 2>&1 || fail "the run of three ranks"
"$write_sample" sample || fail "no sample"
sleep 0 &
wait $!
"$write_sample" killed "$folder/live.of.killed" $! || fail "no sample of a killed rank"
"$tandem" trace archive one -o one.tar.zst > out 2>&1 || fail "no archive"
((failures == 0)) || { cat out >&2; exit 1; }
# Sanitizers reserve more addresses than any machine has memory.
most_kib=8000000
(ulimit -v $most_kib; exec "$tandem" trace info one) > out 2>&1 || most_kib=unlimited

# A number below $1 that this seed determines.
draw() { drawn=$((RANDOM * 32768 + RANDOM)); drawn=$((drawn % $1)); }
# any KIND: puts one of the paths that find's -type KIND lists below the damaged folder into chosen; empty: there is
# none.
any() {
  local found
  mapfile -t found < <(find damaged -mindepth 1 -type "$1" | sort)
  chosen=
  ((${#found[@]} > 0)) || return 1
  draw ${#found[@]}
  chosen=${found[drawn]}
}

damage() {
  local size other
  draw 16
  case $drawn in
    0 | 1) any f && size=$(stat -c %s "$chosen") && draw $((size + 1)) && truncate -s "$drawn" "$chosen" && what="cut off at $drawn" ;;
    2 | 3 | 4 | 13 | 14 | 15)
      any f || return
      size=$(stat -c %s "$chosen")
      ((size > 0)) || return
      what="bytes changed at"
      for _ in 1 2 3 4; do
        draw "$size"
        what+=" $drawn"
        local at=$drawn
        draw 256
        # shellcheck disable=SC2059  # the byte is made by printf itself
        printf "\\x$(printf %02x "$drawn")" | dd of="$chosen" bs=1 seek="$at" conv=notrunc 2> /dev/null
      done
      ;;
    5) any f && rm -f "$chosen" && what="removed" ;;
    6) any f && other=$chosen && any f && [[ $chosen != "$other" ]] && mv "$other" swap && mv "$chosen" "$other" && mv swap "$chosen" &&
      what="swapped with $other" ;;
    7) any f && : > "$chosen" && what="emptied" ;;
    8)
      chosen=$(find damaged -name rank.json | sort | head -1)
      [[ -n $chosen ]] || return
      draw 6
      case $drawn in
        0) echo '{"rank": [[[[' > "$chosen" ;;
        1) echo '[1, 2, null]' > "$chosen" ;;
        2) sed -i 's/"rank": [0-9]*/"rank": -1/; s/"size": [0-9]*/"size": 1e300/' "$chosen" ;;
        3) sed -i 's/"multiplier": [0-9]*/"multiplier": 9223372036854775807/' "$chosen" ;;
        4) sed -i 's/"events": *\[/"events": {"x": [/' "$chosen" ;;
        5) sed -i 's/"buffers": {/"buffers": 7, "others": {/; s/"selection": "[^"]*"/"selection": 3/; s/"end": {/"end": [], "was": {/' "$chosen" ;;
      esac
      what="other json"
      ;;
    9) any f && rm -f "$chosen" && mkdir "$chosen" && what="a folder" ;;
    10) any f && chmod 000 "$chosen" && what="not readable" ;;
    11) any d && rm -rf "$chosen" && what="removed with all that is in it" ;;
    12) any d && rm -rf "$chosen" && echo file > "$chosen" && what="a file" ;;
  esac
  done_to+="$chosen: ${what:-nothing}; "
}

# may_end ARGUMENTS...: the command, on the damaged folder, has little time and memory; a signal may not end it.
may_end() {
  local status
  (ulimit -v $most_kib; exec timeout -k 1 20 "$tandem" trace "$@") > out 2> err < /dev/null
  status=$?
  local trouble=
  case $status in
    0) ;;
    1 | 2)
      # The message names the folder, or something in it. A violated promise is reported on standard output.
      if [[ $1 == check && -s out ]]; then
        grep -q '^violated ' out || trouble="no violated promise is named"
      else
        grep -q 'damaged' err || trouble="no path is named"
      fi
      ;;
    124) trouble="it does not end" ;;
    *) trouble="it does not end by itself" ;;
  esac
  grep -qE 'std::|basic_string|vector::|terminate called|json\.exception|AddressSanitizer|runtime error' err && trouble="an exception's own words"
  if [[ -n $trouble ]]; then
    fail "seed $seed: tandem trace $*: exit $status: $trouble; damage: $done_to"
    head -c 600 err >&2
  fi
}

for ((seed = first_seed; seed < first_seed + seeds; ++seed)); do
  RANDOM=$((seed % 32768))
  draw 4
  base=(one several sample killed)
  name=${base[drawn]}
  rm -rf damaged exported out.tar.zst
  cp -r "$name" damaged
  if [[ $name == killed ]]; then
    # The live buffers belong to the trace, and can be damaged as well.
    cp live.of.killed damaged/live
    for link in damaged/rank-*/tandem/live; do [[ -L $link ]] && ln -sfn "$folder/damaged/live" "$link"; done
  fi
  done_to=
  draw 3
  for ((times = drawn; times >= 0; --times)); do
    what=
    damage 2> /dev/null
  done
  may_end info damaged
  may_end info damaged --json
  may_end dump damaged
  may_end check damaged
  may_end stats damaged --json
  may_end summary damaged --json
  may_end summary damaged
  may_end archive damaged -o out.tar.zst
  for format in paje perfetto ctf; do
    rm -rf exported
    may_end export damaged --format $format -o exported
  done
  may_end recover damaged
  may_end recover damaged --force
  may_end check damaged
  chmod -R u+rwX damaged 2> /dev/null
done
# An archive is no folder, damaged or not.
cp one.tar.zst damaged.tar.zst
truncate -s 100 damaged.tar.zst
seed=archive done_to="cut off"
for command in info dump check stats summary archive recover; do may_end $command damaged.tar.zst; done

((failures == 0)) || exit 1
