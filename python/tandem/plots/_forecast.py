# python/tandem/plots/_forecast.py: a forecast of CO2, from the files that the example co2_forecast writes.
from __future__ import annotations

import csv
import os
from typing import Any, Optional, Union

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ._figure import Source, new_figure, read_object

Point = dict[str, Any]

COLUMNS = ["date", "time_years", "role", "measured_ppm", "mean_ppm", "lower_ppm", "upper_ppm"]
TRAINING_COLOUR = "#4d4d4d"
MEASURED_COLOUR = "#d55e00"
FORECAST_COLOUR = "#0072b2"


def forecast(points: Union[str, os.PathLike[str]], result: Optional[Source] = None) -> Figure:
    """All measurements with the forecast, and below it the held-out years with the errors of the forecast.

    `points` is the file ``forecast.csv`` of the example ``co2_forecast``, `result` its ``result.json``, whose numbers are written into
    the picture.
    """
    rows = _read_points(os.fspath(points))
    if not any(point["role"] != "training" for point in rows):
        raise ValueError(f"{os.fspath(points)}: holds no forecast, nothing to draw")
    lines = _summary_lines(result) if result is not None else []
    figure = new_figure(11, 10)
    whole, near, errors = figure.subplots(3, 1, gridspec_kw={"height_ratios": [3, 3, 1.4]})
    split = min(point["time_years"] for point in rows if point["role"] != "training")
    last = max(point["time_years"] for point in rows)
    first_zoomed = split - 1.5

    _draw_forecast(whole, rows, 1.8)
    whole.set_title("Weekly CO$_2$ at Mauna Loa: Gaussian process regression and forecast", loc="left", fontsize=13)
    whole.axvline(split, color="black", linestyle="--", linewidth=1)
    whole.annotate("training ends", (split, 0.03), xycoords=("data", "axes fraction"), xytext=(-5, 0), textcoords="offset points",
                   ha="right", fontsize=9)
    whole.legend(loc="upper left", frameon=False, markerscale=3)
    whole.annotate("\n".join(lines), (split, 0.12), xycoords=("data", "axes fraction"), xytext=(-7, 0),
                   textcoords="offset points", ha="right", va="bottom", fontsize=9)
    whole.set_xlim(min(point["time_years"] for point in rows) - 0.5, last + 0.5)

    zoomed = [point for point in rows if point["time_years"] >= first_zoomed]
    _draw_forecast(near, zoomed, 3.5)
    near.set_title("The held-out years", loc="left", fontsize=11)
    _draw_errors(errors, zoomed)
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
    return figure


def _read_points(path: str) -> list[Point]:
    """The rows of the CSV file as dictionaries: numbers as floats, empty fields as None."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            raise ValueError(f"{path}:1: found the columns {reader.fieldnames}, expected {COLUMNS}")
        return [{key: row[key] if key in ("date", "role") else (float(row[key]) if row[key] else None) for key in COLUMNS}
                for row in reader]


def _series(points: list[Point], *columns: str) -> list[list[Any]]:
    """The named columns as lists, over the points that have a value in each."""
    rows = [[point[column] for column in columns] for point in points]
    rows = [row for row in rows if None not in row]
    return [list(column) for column in zip(*rows)] if rows else [[] for _ in columns]


def _summary_lines(source: Source) -> list[str]:
    """What the program measured, as short texts."""
    results = {entry["name"]: entry for entry in read_object(source)[1]["results"]}

    def value(name: str) -> float:
        result: float = results[name]["value"]
        return result

    lines = [f"log marginal likelihood {value('log_marginal_likelihood'):.2f} nats"]
    if "root_mean_square_error" in results:
        lines += [f"error: {value('root_mean_square_error'):.2f} ppm root mean square, {value('mean_error'):+.2f} ppm mean",
                  f"{value('coverage_95'):.1f} % of the measurements inside the 95 % band"]
    return lines


def _draw_forecast(axes: Any, points: list[Point], marker_size: float) -> None:
    """Measurements, mean and band into one panel. The labels are for one legend."""
    training = [point for point in points if point["role"] == "training"]
    ahead = [point for point in points if point["role"] != "training"]
    axes.plot(*_series(training, "time_years", "measured_ppm"), ".", color=TRAINING_COLOUR, markersize=marker_size,
              label="measured, training", rasterized=True)
    times, lower, upper = _series(ahead, "time_years", "lower_ppm", "upper_ppm")
    axes.fill_between(times, lower, upper, color=FORECAST_COLOUR, alpha=0.22, linewidth=0, label="forecast, 95 % band")
    axes.plot(*_series(ahead, "time_years", "mean_ppm"), "-", color=FORECAST_COLOUR, linewidth=1.3, label="forecast, mean")
    axes.plot(*_series(ahead, "time_years", "measured_ppm"), ".", color=MEASURED_COLOUR, markersize=marker_size + 0.5,
              label="measured, held out")


def _draw_errors(axes: Any, points: list[Point]) -> None:
    """Forecast minus measurement, and the half width of the band around zero."""
    ahead = [point for point in points if point["role"] != "training"]
    times, mean, lower, upper = _series(ahead, "time_years", "mean_ppm", "lower_ppm", "upper_ppm")
    axes.fill_between(times, [a - b for a, b in zip(lower, mean)], [a - b for a, b in zip(upper, mean)], color=FORECAST_COLOUR,
                      alpha=0.22, linewidth=0)
    times, mean, measured = _series(ahead, "time_years", "mean_ppm", "measured_ppm")
    errors = [m - y for m, y in zip(mean, measured)]
    axes.axhline(0, color=FORECAST_COLOUR, linewidth=1)
    axes.plot(times, errors, ".", color=MEASURED_COLOUR, markersize=4)
    axes.set_ylabel("forecast −\nmeasured (ppm)")
