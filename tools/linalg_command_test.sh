#!/usr/bin/env bash
# tools/linalg_command_test.sh: `tandem linalg` in all operations and precisions, a user's own system, and what it refuses.
# Usage: linalg_command_test.sh PATH_OF_TANDEM
set -uo pipefail

tandem=$1
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/command_test_support.sh" || exit 1

# refused STATUS MESSAGE ARGUMENTS...: the command ends with that status and says MESSAGE on standard error.
refused() {
  local wanted=$1 message=$2
  shift 2
  "$tandem" linalg "$@" > out 2> err
  local status=$?
  [ $status -eq "$wanted" ] || fail "linalg $*: exit status $status instead of $wanted"
  grep -qF -- "$message" err || fail "linalg $*: no \"$message\" in: $(cat err)"
}

for op in potrf potrs posv gemm trsm syrk herk lacpy; do
  for uplo in lower upper; do
    "$tandem" linalg $op -n 150 --nb 64 --precision s,d,c,z --uplo $uplo --check --repetitions 1 --workers 2 > out ||
      fail "linalg $op --uplo $uplo --check"
    [ "$(grep -c "^$op " out)" -eq 4 ] || fail "linalg $op: four rows expected: $(cat out)"
  done
done

for op in getrf gesv; do
  for pivoting in tournament none; do
    "$tandem" linalg $op -n 150 --nb 64 --precision s,d,c,z --pivoting $pivoting --check --repetitions 1 --workers 2 > out ||
      fail "linalg $op --pivoting $pivoting --check"
    [ "$(grep -c "^$op " out)" -eq 4 ] || fail "linalg $op: four rows expected: $(cat out)"
  done
done
for shape in "geqrf -m 150 -n 150" "geqrf -m 310 -n 70" "geqrf -m 70 -n 310" "gels -n 150" "gels -m 310 -n 70 --nrhs 5"; do
  # shellcheck disable=SC2086  # several arguments
  "$tandem" linalg $shape --nb 64 --precision s,d,c,z --check --repetitions 1 --workers 2 > out || fail "linalg $shape --check"
  [ "$(grep -cE '^ge(qrf|ls) ' out)" -eq 4 ] || fail "linalg $shape: four rows expected: $(cat out)"
done
grep -qF " 310x70 " out || fail "rows and columns are not shown: $(cat out)"

# 512^3 / 3 operations at 1 GFlop/s.
"$tandem" linalg potrf -n 512 --nb 128 --emulate-kernels 1 --workers 1 --repetitions 1 > out || fail "emulated kernels"
grep -q "emulated" out || fail "it is not said that kernels are emulated: $(cat out)"
awk '/^potrf/ { found = $7 >= 0.0447 } END { exit !found }' out || fail "emulated kernels take their time: $(cat out)"
refused 2 "computes nothing that --check" potrf -n 100 --emulate-kernels 1 --check
refused 2 "--emulate-kernels is for" gels -n 100 --emulate-kernels 1
refused 2 "takes one precision" potrf -n 100 --emulate-kernels 1 --precision s,d

# The system whose solution is all ones.
cat > a.mtx << 'END'
%%MatrixMarket matrix coordinate real symmetric
3 3 5
1 1 2
2 2 2
3 3 2
2 1 -1
3 2 -1
END
printf '%%%%MatrixMarket matrix array real general\n3 1\n1\n0\n1\n' > b.mtx
"$tandem" linalg posv --matrix a.mtx --rhs b.mtx --out x.mtx --check > out || fail "posv of a user's system"
awk 'NR > 2 && ($1 - 1 > 1e-12 || 1 - $1 > 1e-12) { exit 1 }' x.mtx || fail "the solution is not all ones: $(cat x.mtx)"

# And a general one, with zeros on its diagonal.
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 4\n1 2 1\n2 3 2\n3 1 4\n3 2 1\n' > g.mtx
printf '%%%%MatrixMarket matrix array real general\n3 1\n1\n2\n5\n' > h.mtx
rm x.mtx
"$tandem" linalg gesv --matrix g.mtx --rhs h.mtx --out x.mtx --check > out || fail "gesv of a user's system"
awk 'NR > 2 && ($1 - 1 > 1e-12 || 1 - $1 > 1e-12) { exit 1 }' x.mtx || fail "the solution is not all ones: $(cat x.mtx)"
refused 1 "info = 1" gesv --matrix g.mtx --pivoting none
refused 1 "pivot 3 of the factorisation is zero" getrf --matrix <(sed 's/2 3 2/2 3 0/' g.mtx)
refused 2 "--pivoting is for getrf and gesv" potrf -n 10 --pivoting none

"$tandem" linalg posv --matrix a.mtx --json > out || fail "posv --json"
python3 -c 'import json; r = json.load(open("out"))["results"][0]; assert (r["name"], r["params"]["n"]) == ("posv", 3)' ||
  fail "--json is not the object that was promised: $(cat out)"

sed 's/3 3 2/3 3 -2/' a.mtx > indefinite.mtx
refused 1 "info = 3" posv --matrix indefinite.mtx
sed 's/symmetric/general/' a.mtx > unsymmetric.mtx
refused 2 "not symmetric: elements (2, 1) and (1, 2) differ" posv --matrix unsymmetric.mtx
sed 's/2 1 -1/2 4 -1/' a.mtx > outside.mtx
refused 1 "outside.mtx, line 6: \"4\" is not a column from 1 to 3" posv --matrix outside.mtx
refused 1 "nowhere.mtx: cannot be opened" posv --matrix nowhere.mtx
refused 2 "say how large" potrf
refused 2 "--rhs is for potrs, posv and gesv" gemm -n 10 --rhs b.mtx
refused 2 "exclude each other" posv -n 3 --matrix a.mtx
refused 2 "-m is for geqrf and gels" gemm -n 10 -m 20
refused 2 "at least as many rows" gels -n 20 -m 10
refused 2 "qr not in" qr -n 10
refused 2 "Value 0 not in range" potrf -n 10 --nb 0

[ $failures -eq 0 ]
