#!/usr/bin/env bash
# tools/neighbour_test.sh: another user of the host puts files where the command looks; nothing of ours changes, and nothing of his runs.
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

# attack PROCESS: a live file and the folder that it names, with links in place of streams, all of the neighbour.
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

# Of a rank's process, by the time it has ended; and of one that is gone.
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

# A live file of ours by its owner, which names the neighbour's folder.
attack "$(cat process)"
chown 0:0 "$live"
"$tandem" doctor --clean > out 2> err
is_untouched "tandem doctor --clean"
rm -f "$live"

# A run of the neighbour that lives: it is not listed, and a live file that is cut while it is read kills nobody.
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

# Options of the neighbour in the current folder, among which is a library to load.
mkdir shared && chmod 777 shared
printf '[comm]\nmodules = "%s"\n' "$folder/shared" > shared/tandem.toml
chown $neighbour:$neighbour shared/tandem.toml
(cd shared && "$tandem" machine > ../out 2> ../err)
status=$?
((status == 2)) || fail "options of another user are taken: exit $status"
holds err "tandem.toml: belongs to user $neighbour"
chown 0:0 shared/tandem.toml
(cd shared && "$tandem" machine > ../out 2> ../err) || fail "our own options are refused: $(cat err)"

# A folder of models that leads elsewhere.
mkdir models && chown $neighbour:$neighbour models
"$tandem" linalg potrf -n 128 --nb 64 --tandem.models=on --tandem.model.folder="$folder/models" > out 2> err
[[ -z $(ls -A models) ]] || fail "models are written into a neighbour's folder"
holds err "belongs to user $neighbour"

exit $((failures > 0))
