#!/usr/bin/env python3
# python/scripts/plot_forecast.py: a plot of a CO2 forecast, from the CSV and JSON files that co2_forecast wrote.
"""Draw all measurements with the forecast, and below it the held-out years with the errors of the forecast."""

import argparse
import csv
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator

COLUMNS = ["date", "time_years", "role", "measured_ppm", "mean_ppm", "lower_ppm", "upper_ppm"]
TRAINING_COLOUR = "#4d4d4d"
MEASURED_COLOUR = "#d55e00"
FORECAST_COLOUR = "#0072b2"


def read_points(path):
    """The rows of the CSV file as dictionaries: numbers as floats, empty fields as None."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            sys.exit(f"{path}:1: found the columns {reader.fieldnames}, expected {COLUMNS}")
        return [{key: row[key] if key in ("date", "role") else (float(row[key]) if row[key] else None) for key in COLUMNS}
                for row in reader]


def series(points, *columns):
    """The named columns as lists, over the points that have a value in each."""
    rows = [[point[column] for column in columns] for point in points]
    rows = [row for row in rows if None not in row]
    return [list(column) for column in zip(*rows)] if rows else [[] for _ in columns]


def summary_lines(path):
    """What the program measured, as short texts."""
    results = {entry["name"]: entry for entry in json.loads(Path(path).read_text(encoding="utf-8"))["results"]}

    def value(name):
        return results[name]["value"]

    lines = [f"log marginal likelihood {value('log_marginal_likelihood'):.2f} nats"]
    if "root_mean_square_error" in results:
        lines += [f"error: {value('root_mean_square_error'):.2f} ppm root mean square, {value('mean_error'):+.2f} ppm mean",
                  f"{value('coverage_95'):.1f} % of the measurements inside the 95 % band"]
    return lines


def draw_forecast(axes, points, marker_size):
    """Measurements, mean and band into one panel. Returns nothing; the labels are for one legend."""
    training = [point for point in points if point["role"] == "training"]
    ahead = [point for point in points if point["role"] != "training"]
    axes.plot(*series(training, "time_years", "measured_ppm"), ".", color=TRAINING_COLOUR, markersize=marker_size,
              label="measured, training", rasterized=True)
    times, lower, upper = series(ahead, "time_years", "lower_ppm", "upper_ppm")
    axes.fill_between(times, lower, upper, color=FORECAST_COLOUR, alpha=0.22, linewidth=0, label="forecast, 95 % band")
    axes.plot(*series(ahead, "time_years", "mean_ppm"), "-", color=FORECAST_COLOUR, linewidth=1.3, label="forecast, mean")
    axes.plot(*series(ahead, "time_years", "measured_ppm"), ".", color=MEASURED_COLOUR, markersize=marker_size + 0.5,
              label="measured, held out")


def draw_errors(axes, points):
    """Forecast minus measurement, and the half width of the band around zero."""
    ahead = [point for point in points if point["role"] != "training"]
    times, mean, lower, upper = series(ahead, "time_years", "mean_ppm", "lower_ppm", "upper_ppm")
    axes.fill_between(times, [a - b for a, b in zip(lower, mean)], [a - b for a, b in zip(upper, mean)], color=FORECAST_COLOUR,
                      alpha=0.22, linewidth=0)
    times, mean, measured = series(ahead, "time_years", "mean_ppm", "measured_ppm")
    errors = [m - y for m, y in zip(mean, measured)]
    axes.axhline(0, color=FORECAST_COLOUR, linewidth=1)
    axes.plot(times, errors, ".", color=MEASURED_COLOUR, markersize=4)
    axes.set_ylabel("forecast −\nmeasured (ppm)")


def draw(points, lines, output):
    figure, (whole, near, errors) = plt.subplots(3, 1, figsize=(11, 10), gridspec_kw={"height_ratios": [3, 3, 1.4]},
                                                 constrained_layout=True)
    split = min(point["time_years"] for point in points if point["role"] != "training")
    last = max(point["time_years"] for point in points)
    first_zoomed = split - 1.5

    draw_forecast(whole, points, 1.8)
    whole.set_title("Weekly CO$_2$ at Mauna Loa: Gaussian process regression and forecast", loc="left", fontsize=13)
    whole.axvline(split, color="black", linestyle="--", linewidth=1)
    whole.annotate("training ends", (split, 0.03), xycoords=("data", "axes fraction"), xytext=(-5, 0), textcoords="offset points",
                   ha="right", fontsize=9)
    whole.legend(loc="upper left", frameon=False, markerscale=3)
    whole.annotate("\n".join(lines), (split, 0.12), xycoords=("data", "axes fraction"), xytext=(-7, 0),
                   textcoords="offset points", ha="right", va="bottom", fontsize=9)
    whole.set_xlim(min(point["time_years"] for point in points) - 0.5, last + 0.5)

    zoomed = [point for point in points if point["time_years"] >= first_zoomed]
    draw_forecast(near, zoomed, 3.5)
    near.set_title("The held-out years", loc="left", fontsize=11)
    draw_errors(errors, zoomed)
    for axes in (near, errors):
        axes.axvline(split, color="black", linestyle="--", linewidth=1)
        axes.set_xlim(first_zoomed, last + 0.1)
    near.tick_params(labelbottom=False)
    errors.set_xlabel("year")
    for axes in (whole, near):
        axes.set_ylabel("CO$_2$ (ppm by volume)")
    for axes in (whole, near, errors):
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    figure.savefig(output, dpi=140)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("forecast", help="forecast.csv as co2_forecast writes it")
    parser.add_argument("--summary", help="result.json of the same run; its numbers are written into the picture")
    parser.add_argument("--output", default="forecast.png", help="the picture to write (default: %(default)s)")
    arguments = parser.parse_args()
    points = read_points(arguments.forecast)
    if not any(point["role"] != "training" for point in points):
        sys.exit(f"{arguments.forecast}: holds no forecast, nothing to draw")
    draw(points, summary_lines(arguments.summary) if arguments.summary else [], arguments.output)


if __name__ == "__main__":
    main()
