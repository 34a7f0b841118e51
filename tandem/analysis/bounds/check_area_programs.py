#!/usr/bin/env python3
# tandem/analysis/bounds/check_area_programs.py: solves the output of print_area_programs by scipy, and compares.
"""Usage: check_area_programs.py PRINT_AREA_PROGRAMS COUNT"""
import json
import subprocess
import sys

try:
    import numpy as np
    from scipy.optimize import linprog
except ImportError as error:
    print(f"skipped: {error}; install Debian's python3-scipy to run this check")
    sys.exit(0)


def optimum(workers, tasks, times):
    """Of: minimise T, sum over kinds of x = tasks, sum over kernels of x * time <= workers * T. By HiGHS, another solver than ours."""
    kinds, kernels = len(workers), len(tasks)
    scale = max(n * min(time for time in row if time is not None) for n, row in zip(tasks, times))
    upper, equal = np.zeros((kinds, 1 + kinds * kernels)), np.zeros((kernels, 1 + kinds * kernels))
    upper[:, 0] = -1
    limits = [(0, None)]
    for kernel, row in enumerate(times):
        for kind, time in enumerate(row):
            column = 1 + kernel * kinds + kind
            equal[kernel, column] = 1
            limits.append((0, 0 if time is None else None))
            upper[kind, column] = tasks[kernel] * (time or 0) / workers[kind] / scale
    cost = np.zeros(1 + kinds * kernels)
    cost[0] = 1
    solved = linprog(cost, A_ub=upper, b_ub=np.zeros(kinds), A_eq=equal, b_eq=np.ones(kernels), bounds=limits, method="highs")
    assert solved.success, solved.message
    return solved.fun * scale


def check(line):
    said = json.loads(line)
    workers, tasks, times = said["workers"], said["tasks"], said["times"]
    expected, where = optimum(workers, tasks, times), f"seed {said['seed']}"
    assert said["exact"], f"{where}: lp_solve failed"
    assert abs(said["bound"] - expected) <= 1e-6 * expected, f"{where}: {said['bound']} instead of {expected}"
    placed = np.array(said["placed"])
    assert np.allclose(placed.sum(axis=1), tasks) and (placed >= 0).all(), f"{where}: not all tasks are placed"
    assert all(time is not None or x == 0 for row, of in zip(times, placed) for time, x in zip(row, of)), f"{where}: a task cannot run there"
    busy = (placed * np.array([[time or 0 for time in row] for row in times])).sum(axis=0) / workers
    assert busy.max() <= expected * (1 + 1e-6), f"{where}: the distribution takes {busy.max()}"


def main():
    output = subprocess.run(sys.argv[1:3], check=True, capture_output=True, text=True).stdout
    if output.startswith("skipped:"):
        print(output, end="")
        return
    lines = output.splitlines()
    assert len(lines) == int(sys.argv[2])
    for line in lines:
        check(line)
    print(f"{len(lines)} linear programs agree with scipy")


main()
