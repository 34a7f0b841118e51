#!/usr/bin/env python3
# examples/co2_forecast/check_likelihood.py: the program's log marginal likelihood against scikit-learn's. Test only.
"""Compare at three settings of the hyperparameters, to 1e-8 relative. Exit status 77 when scikit-learn is not installed."""

import argparse
import datetime
import json
import subprocess
import sys

try:
    import numpy as np
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, RationalQuadratic, WhiteKernel
except ImportError as error:
    print(f"skipped: {error}; install Debian's python3-sklearn to run this check")
    sys.exit(77)

TOLERANCE = 1e-8
FIRST_HELD_OUT_YEAR = 1997

DEFAULTS = {"trend_amplitude": 66, "trend_length": 67, "season_amplitude": 2.4, "season_decay": 90, "season_smoothness": 1.3,
            "medium_amplitude": 0.66, "medium_length": 1.2, "medium_shape": 0.78, "correlated_noise": 0.18,
            "correlated_noise_length": 1.6 / 12, "white_noise": 0.19}

SETTINGS = {
    "the book's": {},
    "near the maximum for these data": {
        "trend_amplitude": 33.0, "trend_length": 40.5, "season_amplitude": 3.23, "season_decay": 170.6, "season_smoothness": 1.48,
        "medium_amplitude": 0.66, "medium_length": 0.547, "medium_shape": 0.1, "correlated_noise": 0.2347,
        "correlated_noise_length": 0.02, "white_noise": 0.2535},
    "rough and noisy": {
        "trend_amplitude": 20, "trend_length": 12, "season_amplitude": 1.5, "season_decay": 15, "season_smoothness": 0.6,
        "medium_amplitude": 1.9, "medium_length": 0.3, "medium_shape": 5, "correlated_noise": 0.6,
        "correlated_noise_length": 0.31, "white_noise": 0.9},
}


def training_set(path):
    """Times in years and measurements less their mean, of the years before the split, read independently of the program."""
    times, values = [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(("#", "date")) or not line.strip():
                continue
            date, value = line.strip().split(",")
            day = datetime.date.fromisoformat(date)
            if value and day.year < FIRST_HELD_OUT_YEAR:
                times.append(day.year + (day.timetuple().tm_yday - 1) / 365.25)
                values.append(float(value))
    values = np.array(values)
    return np.array(times)[:, None], values - values.mean()


def likelihood_of_sklearn(times, values, theta):
    """Nothing is optimised or added: kernels exactly as in Rasmussen and Williams (2006), section 5.4.3."""
    kernel = (theta["trend_amplitude"] ** 2 * RBF(theta["trend_length"])
              + theta["season_amplitude"] ** 2 * RBF(theta["season_decay"])
              * ExpSineSquared(length_scale=theta["season_smoothness"], periodicity=1.0)
              + theta["medium_amplitude"] ** 2
              * RationalQuadratic(length_scale=theta["medium_length"], alpha=theta["medium_shape"])
              + theta["correlated_noise"] ** 2 * RBF(theta["correlated_noise_length"])
              + WhiteKernel(theta["white_noise"] ** 2))
    regressor = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
    # What fit() would set, without the factorisation that log_marginal_likelihood() does anyway.
    regressor.kernel_, regressor.X_train_, regressor.y_train_ = kernel, times, values
    return regressor.log_marginal_likelihood(kernel.theta)


def likelihood_of_program(program, data, changes):
    command = [program, "--data", data, "--split-year", str(FIRST_HELD_OUT_YEAR), "--likelihood-only", "--json"]
    for name, value in changes.items():
        command += ["--hyper", f"{name}={value!r}"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    results = {entry["name"]: entry["value"] for entry in json.loads(output)["results"]}
    return results["log_marginal_likelihood"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="the executable co2_forecast")
    parser.add_argument("data", help="co2_weekly.csv")
    arguments = parser.parse_args()
    times, values = training_set(arguments.data)
    failed = False
    for name, changes in SETTINGS.items():
        expected = likelihood_of_sklearn(times, values, DEFAULTS | changes)
        found = likelihood_of_program(arguments.program, arguments.data, changes)
        difference = abs(found - expected) / abs(expected)
        failed |= not difference <= TOLERANCE
        print(f"{name}: scikit-learn {expected!r}, co2_forecast {found!r}, relative difference {difference:.1e}")
    print(f"{'FAILED' if failed else 'passed'}: tolerance {TOLERANCE}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
