#!/usr/bin/env bash
# tests/slurm/slurm_test.sh: jobs of a real Slurm of two nodes on this host: srun, salloc, sbatch, and a rank that never comes.
# Usage: slurm_test.sh PATH_OF_TANDEM PATH_OF_JOIN_PROBE WITH_PMIX
set -uo pipefail

tandem=$1
probe=$2
with_pmix=$3
here=$(dirname "$(readlink -f "$0")")

for program in slurmctld slurmd srun salloc sbatch munged; do
  command -v "$program" > /dev/null || PATH=$PATH:/usr/sbin:/sbin
  command -v "$program" > /dev/null || { echo "skipped: no $program (packages slurm-wlm and munge)"; exit 0; }
done
(($(id -u) == 0)) || { echo "skipped: Slurm's daemons need root"; exit 0; }

folder=$(mktemp -d)
chmod 755 "$folder"
finish() {
  "$here/local_slurm" stop "$folder/slurm" > /dev/null 2>&1
  rm -rf "$folder"
}
trap finish EXIT
cd "$folder" || exit 1
mkdir slurm
# Ports that nobody listens at: one that the system gives, and those after it, from a range that it gives to nobody.
port=$(python3 - << 'PYTHON'
import random, socket
def free(port):
    with socket.socket() as s:
        try: s.bind(("", port))
        except OSError: return False
    return True
print(next(p for p in iter(lambda: random.randrange(20000, 31000), None) if all(free(p + i) for i in range(3))))
PYTHON
)
if ! "$here/local_slurm" start "$folder/slurm" 2 2 "$port" > start.log 2>&1; then
  cat start.log slurm/log/*.log | tail -n 30
  echo "skipped: Slurm does not start here"
  exit 0
fi
export SLURM_CONF=$folder/slurm/slurm.conf
unset "${!TANDEM_@}"
failures=0

# run STATUS COMMAND...: leaves the streams in the files out and err. Status "fails" is any but 0 and that of the time limit.
run() {
  local status=$1
  shift
  timeout -k 5 90 "$@" > out 2> err < /dev/null
  local actual=$?
  if [[ $status == fails ]]; then ((actual != 0 && actual != 124)) && return; else ((actual == status)) && return; fi
  echo "FAILED: $*: exit $actual instead of $status" >&2
  head -c 3000 out err >&2
  failures=$((failures + 1))
}
holds() {
  local count
  count=$(grep -cE -- "$3" "$2")
  ((count == $1)) && return
  echo "FAILED: $count lines of $2 instead of $1 are like '$3':" >&2
  head -c 3000 "$2" >&2
  failures=$((failures + 1))
}

# Under srun ranks find each other by PMIx.
if ((with_pmix)); then
  run 0 srun -N 2 -n 4 --ntasks-per-node=2 --mpi=pmix "$probe"
  holds 4 out 'by pmix found 0 1 2 3;'
  run 0 srun -N 2 -n 4 --ntasks-per-node=2 --mpi=pmix "$tandem" linalg potrf -n 256 --nb 64 --check
  # A rank that ends before it joins ends the job, and is named.
  run fails srun -N 2 -n 4 --ntasks-per-node=2 --mpi=pmix sh -c 'if [ $PMIX_RANK = 1 ]; then exit 0; fi; sleep 1; exec "$0"' "$probe"
  holds 1 err 'rank 1 has ended before it joined the job: rank 0 ends the job'
fi
# Without PMIx a program refuses to be several jobs of one rank.
run fails srun -n 2 --mpi=none "$probe"
holds 2 err 'start them with `srun --mpi=pmix`, or start `tandem run` once inside the allocation'

# `tandem run` takes the hosts of the allocation, and reaches them by srun.
run 0 salloc -N 2 "$tandem" run "$probe"
holds 2 out ' of 2 by tandem run found 0 1;'
run 0 salloc -N 2 --ntasks-per-node=2 "$tandem" run "$probe"
holds 4 out ' of 4 by tandem run found 0 1 2 3;'
run 0 salloc -N 2 "$tandem" run -n 4 sh -c 'echo "$TANDEM_JOB_RANK on $SLURMD_NODENAME"'
holds 2 out '^\[[01]\] [01] on n1$'
holds 2 out '^\[[23]\] [23] on n2$'
run 3 salloc -N 2 "$tandem" run sh -c 'if [ $TANDEM_JOB_RANK = 1 ]; then exit 3; fi; exec sleep 60'
holds 1 err 'rank 1 ended with exit code 3; the other ranks are ended too'

# In a batch job the first host is this one.
printf '#!/bin/sh\nexec "%s" run "%s"\n' "$tandem" "$probe" > job.sh
run 0 sbatch --wait -N 2 --ntasks-per-node=1 --output="$folder/job.out" job.sh
holds 2 job.out ' of 2 by tandem run found 0 1;'

((failures == 0)) || exit 1
