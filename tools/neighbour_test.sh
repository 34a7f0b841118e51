#!/usr/bin/env bash
# tools/neighbour_test.sh: another user plants files where the command looks; our files stay unchanged, and nothing of
# his runs.
# Usage: neighbour_test.sh PATH_OF_TANDEM PATH_OF_WRITE_SAMPLE_TRACE
set -uo pipefail

tandem=$1
write_sample=$2
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/command_test_support.sh" || exit 1
unset "${!TANDEM_@}" "${!SLURM_@}" "${!LSB_@}" PBS_NODEFILE OAR_NODEFILE
((EUID == 0)) || { echo "skipped: only root can give files to another user"; exit 0; }
live_folder=/dev/shm
[[ -w $live_folder ]] || { echo "skipped: no /dev/shm"; exit 0; }
neighbour=65534

echo precious > precious
chmod 600 precious
is_untouched() {
  [[ $(cat precious) == precious ]] || fail "$1 has changed a file that a link names"
  [[ ! -e made ]] || fail "$1 has made a file through a link"
}

# attack PROCESS: plants a neighbour's live file and the folder that it names, with links in place of streams.
attack() {
  rm -rf evil
  live=$live_folder/tandem-trace.$1.evil
  "$write_sample" evil "$live" "$1" || fail "no sample"
  local rank
  for rank in evil/rank-*; do
    rm -f "$rank"/stream_*
    ln -s "$folder/precious" "$rank/stream_0001"
    ln -s "$folder/made" "$rank/stream_0002"
  done
  chown -hR $neighbour:$neighbour evil
  chown $neighbour:$neighbour "$live"
}
export -f attack fail
export folder live_folder write_sample neighbour

# The process is a rank's, which has ended by then, or one that died long ago.
timeout 60 "$tandem" run -n 1 bash -c 'failures=0; attack $$; echo $$ > process' > out 2> err < /dev/null
live=$live_folder/tandem-trace.$(cat process).evil
[[ -e $live ]] || fail "there was no attack, or its live file was removed"
is_untouched "tandem run"
grep -q 'recover\|gathered' err && fail "tandem run looked into the neighbour's trace: $(cat err)"
"$tandem" doctor --clean > out 2> err
is_untouched "tandem doctor --clean"
[[ -e $live ]] || fail "tandem doctor --clean has removed a neighbour's file"
tandem_ends 1 trace recover evil
is_untouched "tandem trace recover"
holds err "belongs to user $neighbour"
rm -f "$live"

# A live file that we own names the neighbour's folder.
attack "$(cat process)"
chown 0:0 "$live"
"$tandem" doctor --clean > out 2> err
is_untouched "tandem doctor --clean"
rm -f "$live"

# A live run of the neighbour is not listed, and a live file that is cut while it is read kills no reader.
attack $$
tandem_ends 0 top
grep -q evil out && fail "tandem top lists a neighbour's run"
(while [[ -e $live ]]; do truncate -c -s 100 "$live"; truncate -c -s 400000 "$live"; sleep 0.01; done) &
cutter=$!
for rank in evil/rank-*; do
  timeout 60 "$tandem" top "$rank" --count 3 --interval 50ms > out 2> err < /dev/null
  status=$?
  ((status <= 2)) || fail "tandem top of a live file that is cut: exit $status"
done
rm -f "$live"
wait $cutter

# The current folder has the neighbour's options, one of which names a library to load.
mkdir shared && chmod 777 shared
printf '[comm]\nmodules = "%s"\n' "$folder/shared" > shared/tandem.toml
chown $neighbour:$neighbour shared/tandem.toml
(cd shared && "$tandem" machine > ../out 2> ../err)
status=$?
((status == 2)) || fail "options of another user are taken: exit $status"
holds err "tandem.toml: belongs to user $neighbour"
chown 0:0 shared/tandem.toml
(cd shared && "$tandem" machine > ../out 2> ../err) || fail "our own options are refused: $(cat err)"

# A folder of models is a link to another place.
mkdir models && chown $neighbour:$neighbour models
"$tandem" linalg potrf -n 128 --nb 64 --tandem.models=on --tandem.model.folder="$folder/models" > out 2> err
[[ -z $(ls -A models) ]] || fail "models are written into a neighbour's folder"
holds err "belongs to user $neighbour"

exit $((failures > 0))
