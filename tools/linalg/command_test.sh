#!/usr/bin/env bash
# tools/linalg/command_test.sh: `tandem linalg` in all operations and precisions, a user's own system, and what it refuses.
# Usage: linalg_command_test.sh PATH_OF_TANDEM
set -uo pipefail

tandem=$1
# shellcheck source=tools/command_test_support.sh
source "$(dirname "$0")/../command_test_support.sh" || exit 1

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
awk '/^potrf/ { found = $9 >= 0.0447 } END { exit !found }' out || fail "emulated kernels take their time: $(cat out)"
# Main memory holds a quarter of the triangle, and a file the rest; copies are compared.
for op in "potrf --uplo lower" "copy" "geqrf"; do
  # shellcheck disable=SC2086  # several arguments
  "$tandem" linalg $op -n 300 --nb 32 --check --repetitions 1 --workers 2 --tandem.memory=128KiB --tandem.spill="$folder" > out ||
    fail "linalg $op in little memory"
  # Each rank has memory for a quarter of its share.
  # shellcheck disable=SC2086
  "$tandem" run -n 2 "$tandem" linalg $op -n 300 --nb 32 --check --repetitions 1 --workers 1 --tandem.memory=64KiB --tandem.spill="$folder" > out ||
    fail "linalg $op in little memory on two ranks"
  # shellcheck disable=SC2086
  HWLOC_SYNTHETIC="numa:2 core:1 pu:1" "$tandem" linalg $op -n 300 --nb 32 --check --repetitions 1 --workers 2 --tandem.memory=192KiB \
    --tandem.numa=on --tandem.spill="$folder" > out || fail "linalg $op in little memory of two NUMA nodes"
done
refused 2 "computes nothing that --check" potrf -n 100 --emulate-kernels 1 --check
refused 2 "--emulate-kernels is for" gels -n 100 --emulate-kernels 1
refused 2 "takes one precision" potrf -n 100 --emulate-kernels 1 --precision s,d
refused 2 "option comm.progress_core: 'near' is neither" potrf -n 100 --tandem.comm.progress_core=near
refused 2 "option message_node: 'near' is neither" potrf -n 100 --tandem.message_node=near

# --- conjugate gradients, a stencil, and copies: on one rank and on several, with the same number of steps
for shape in "cg -n 150" "cg -n 150 --uplo upper" "cg -n 1" "copy -n 150 -m 70" "copy -n 1"; do
  # shellcheck disable=SC2086  # several arguments
  "$tandem" linalg $shape --nb 64 --precision s,d,c,z --check --repetitions 1 --workers 2 > out || fail "linalg $shape --check"
  [ "$(grep -cE '^(cg|copy) ' out)" -eq 4 ] || fail "linalg $shape: four rows expected: $(cat out)"
done
for shape in "-n 150 -m 70 --nb 64" "-n 1" "-n 2 -m 3 --nb 1" "-n 60 --nb 25 --iterations 1000 --tolerance 1e-4"; do
  # shellcheck disable=SC2086
  "$tandem" linalg stencil $shape --precision s,d --check --repetitions 1 --workers 2 > out ||
    fail "linalg stencil $shape --check"
  [ "$(grep -c '^stencil ' out)" -eq 2 ] || fail "linalg stencil $shape: two rows expected: $(cat out)"
done

# result EXPRESSION ARGUMENTS...: linalg's JSON has a result for which the Python EXPRESSION of its "params" p holds.
result() {
  local expression=$1
  shift
  "$@" --check --json --repetitions 1 2> err | sed 's/^\[0\] //' > out || fail "$*: $(cat err)"
  python3 -c "import json; p = json.load(open('out'))['results'][0]['params']; assert $expression, p" 2>> err ||
    fail "$*: not $expression: $(tail -n 1 err)"
}
of_cg='(p["iterations"], p["relative_residual"] < 1e-8, p["info"])'
result 'p["iterations"] == 7 and 1e-8 < p["relative_residual"] < 1' "$tandem" linalg cg -n 100 --iterations 7 --tolerance 0
"$tandem" linalg cg -n 150 --nb 32 --tolerance 1e-8 --out alone.mtx --check --json > out || fail "cg --out"
steps=$(python3 -c "import json; print(json.load(open('out'))['results'][0]['params']['iterations'])")
for grid in "" "--p 1" "--q 1"; do
  rm -f several.mtx
  # shellcheck disable=SC2086
  result "$of_cg == ($steps, True, 0)" \
    "$tandem" run -n 3 "$tandem" linalg cg -n 150 --nb 32 --tolerance 1e-8 $grid --out several.mtx
  cmp -s alone.mtx several.mtx || fail "cg on three ranks $grid gives other numbers than on one"
  # shellcheck disable=SC2086
  result 'p["iterations"] == 100 and p["ranks"] == 3' "$tandem" run -n 3 "$tandem" linalg stencil -n 90 -m 100 --nb 16 $grid
done
result 'p["travelling_bytes"] == 0' "$tandem" run -n 2 "$tandem" linalg copy -n 64 --nb 16
# Half of the tiles of rows and columns dealt out in turn change hands.
result 'p["travelling_bytes"] == 64 * 64 * 4' "$tandem" run -n 2 "$tandem" linalg copy -n 64 --nb 16 --p 1 --to-p 2
echo 0 > first.ranks
echo 1 > second.ranks
echo 1 1 1 1 > third.ranks
result 'p["travelling_bytes"] == 64 * 64 * 8' "$tandem" run -n 2 "$tandem" linalg copy -n 64 --nb 16 \
  --distribution first.ranks --to-distribution second.ranks

# Rank 1, three times as fast as rank 0, has three of four tile columns, of which half were its own before.
result 'p["travelling_bytes"] == 64 * 16 * 8' "$tandem" run -n 2 "$tandem" linalg copy -n 64 --nb 16 --p 1 --to-distribution third.ranks --speeds 1,3
refused 2 "'x' is no speed" copy -n 10 --speeds x
refused 2 "--speeds has 2 for 1 rank" copy -n 10 --speeds 1,1

# Lists and ranges of sizes: a result of each, in a table, as JSON and as CSV.
"$tandem" linalg potrf -n 64:128:64,200 --nb 32,50 --repetitions 1 --check --csv sizes.csv > sizes.txt || fail "sizes in a list"
[[ $(awk 'NR > 1 { print $3 "," $4 }' sizes.txt | tr '\n' ' ') == "64,32 64,50 128,32 128,50 200,32 200,50 " ]] || fail "not all sizes in the table"
[[ $(cut -d, -f 4,5 sizes.csv | tr '\n' ' ') == "n,nb 64,32 64,50 128,32 128,50 200,32 200,50 " ]] || fail "not all sizes in the file"
refused 2 "-n: '64:32:8' is not a whole number" potrf -n 64:32:8
refused 2 "--out takes one precision, one size and one tile" potrf -n 64,128 --out x.mtx
refused 1 "no/such.csv" potrf -n 64 --csv no/such.csv

refused 1 "not converged after 3 iterations" cg -n 100 --iterations 3
refused 1 "the largest change of a point is" stencil -n 100 --iterations 10 --tolerance 1e-9
refused 2 "not negative" cg -n 10 --tolerance -1
refused 2 "not negative" stencil -n 10 --tolerance nan
refused 2 "--iterations and --tolerance are for cg and stencil" potrf -n 10 --tolerance 1
refused 2 "--to-p, --to-q and --to-distribution are for copy" lacpy -n 10 --to-p 1
refused 2 "P times Q must be their number" copy -n 10 --to-p 3
refused 2 "exclude each other" copy -n 10 --to-p 1 --to-distribution file
refused 2 "give precision s or d" stencil -n 10 --precision z
refused 2 "-n: '0' is not a whole number from 1" stencil -n 0

# A system whose solution is all ones.
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

rm x.mtx
"$tandem" linalg cg --matrix a.mtx --rhs b.mtx --out x.mtx --check > out || fail "cg of a user's system"
awk 'NR > 2 && ($1 - 1 > 1e-12 || 1 - $1 > 1e-12) { exit 1 }' x.mtx || fail "the solution is not all ones: $(cat x.mtx)"

# A general matrix with zeros on its diagonal.
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 4\n1 2 1\n2 3 2\n3 1 4\n3 2 1\n' > g.mtx
printf '%%%%MatrixMarket matrix array real general\n3 1\n1\n2\n5\n' > h.mtx
rm x.mtx
"$tandem" linalg gesv --matrix g.mtx --rhs h.mtx --out x.mtx --check > out || fail "gesv of a user's system"
awk 'NR > 2 && ($1 - 1 > 1e-12 || 1 - $1 > 1e-12) { exit 1 }' x.mtx || fail "the solution is not all ones: $(cat x.mtx)"
refused 1 "info = 1" gesv --matrix g.mtx --pivoting none
refused 1 "pivot 3 of the factorisation is zero" getrf --matrix <(sed 's/2 3 2/2 3 0/' g.mtx)
refused 2 "--pivoting is for getrf and gesv" potrf -n 10 --pivoting none

"$tandem" linalg posv --matrix a.mtx --json --repetitions 3 > out || fail "posv --json"
python3 -c 'import json; r = json.load(open("out"))["results"][0]; assert sorted(r["details"]["seconds"])[1] == r["params"]["seconds"]' ||
  fail "--json does not have each repetition's time: $(cat out)"
python3 -c 'import json; r = json.load(open("out"))["results"][0]; assert (r["name"], r["params"]["n"]) == ("posv", 3)' ||
  fail "--json is not the object that was promised: $(cat out)"

sed 's/3 3 2/3 3 -2/' a.mtx > indefinite.mtx
refused 1 "info = 3" posv --matrix indefinite.mtx
refused 1 "is not a positive number (info = " cg --matrix indefinite.mtx --rhs b.mtx
printf '%%%%MatrixMarket matrix array real general\n3 2\n1\n0\n1\n1\n0\n1\n' > two.mtx
refused 2 "cg takes one right-hand side, and here are 2" cg --matrix a.mtx --rhs two.mtx
sed 's/symmetric/general/' a.mtx > unsymmetric.mtx
refused 2 "not symmetric: elements (2, 1) and (1, 2) differ" posv --matrix unsymmetric.mtx
sed 's/2 1 -1/2 4 -1/' a.mtx > outside.mtx
refused 1 "outside.mtx, line 6: \"4\" is not a column from 1 to 3" posv --matrix outside.mtx
refused 1 "nowhere.mtx: cannot be opened" posv --matrix nowhere.mtx
refused 2 "say how large" potrf
refused 2 "--rhs is for potrs, posv, gesv and cg" gemm -n 10 --rhs b.mtx
refused 2 "exclude each other" posv -n 3 --matrix a.mtx
refused 2 "-m is for geqrf, gels, stencil and copy" gemm -n 10 -m 20
refused 2 "at least as many rows" gels -n 20 -m 10
refused 2 "'qr' is none of cg, copy" qr -n 10
refused 2 "--nb: '0' is not a whole number from 1" potrf -n 10 --nb 0

[ $failures -eq 0 ]
