# python/tandem/experiments/points.py: commands that run side by side, and what they measured, kept.
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

Words = tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """A command, and which of the numbers that it prints counts."""

    words: Words
    result: str  # "value" or a param of the first result; or a path: "results.name=lose.value"


class Failed(RuntimeError):
    """A command that did not end well. Its text has the command and its last words."""


class Kept:
    """Results in a file, a line for each, so that an experiment that was interrupted goes on. Lines of other versions of Tandem do not count."""

    def __init__(self, file: Path, version: str) -> None:
        self.file = file
        self.version = version
        self.values: dict[Point, float] = {}
        if not file.exists():
            return
        text = file.read_text(encoding="utf-8", errors="replace")
        if text and not text.endswith("\n"):  # a line that was being written when the experiment was interrupted
            with file.open("a", encoding="utf-8") as out:
                out.write("\n")
        for line in text.splitlines():
            try:
                found = json.loads(line)
                if found["version"] == version:
                    self.values[Point(tuple(found["words"]), found.get("result", "value"))] = float(found["value"])
            except (ValueError, KeyError, TypeError):
                continue  # no whole line

    def add(self, point: Point, value: float, seconds: float) -> None:
        self.values[point] = value
        line = json.dumps({"words": point.words, "result": point.result, "value": value, "seconds": round(seconds, 3),
                           "version": self.version})
        with self.file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def number_of(report: Any, result: str) -> float:
    """Raises what Python raises where there is no such number."""
    if "." not in result:
        first = report["results"][0]
        return float(first["value"] if result == "value" else first["params"][result])
    found = report
    for part in result.split("."):
        key, _, wanted = part.partition("=")
        if wanted:
            found = next(one for one in found if str(one[key]) == wanted)
        else:
            found = found[int(part) if isinstance(found, list) else part]
    return float(found)


def measured(tandem: str, words: Words, results: Iterable[str], limit_s: float) -> dict[str, float]:
    """Runs `tandem WORDS`, and takes numbers of what it prints as JSON."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")} | {"TANDEM_LOG": "error"}
    try:
        done = subprocess.run([tandem, *words], env=environment, capture_output=True, text=True, check=False, timeout=max(limit_s, 1),
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise Failed(f"tandem {' '.join(words)} ended with {done.returncode}: {' / '.join(last)}")
    begin = done.stdout.find("{")
    try:
        report, _ = json.JSONDecoder().raw_decode(done.stdout, begin if begin >= 0 else 0)
        return {result: number_of(report, result) for result in results}
    except (ValueError, KeyError, IndexError, TypeError, StopIteration) as error:
        raise Failed(f"tandem {' '.join(words)}: printed no {', '.join(results)} of a result as JSON (--json)") from error


def run_all(tandem: str, points: Iterable[Point], kept: Kept, deadline: float, show: Callable[[int, int], None],
            alone: bool = False) -> Optional[str]:
    """Runs what is not kept yet until `deadline` (`time.monotonic`), on all processors, or, `alone`, one after the other.
    Returns why some are missing."""
    wanted: dict[Words, list[str]] = {}
    for point in dict.fromkeys(points):
        if point not in kept.values:
            wanted.setdefault(point.words, []).append(point.result)
    waiting = list(wanted)
    total, done, cores = len(waiting), 0, 1 if alone else len(os.sched_getaffinity(0))
    refused: Optional[str] = None
    running: dict[Future[dict[str, float]], tuple[Words, float]] = {}
    with ThreadPoolExecutor(cores) as pool:
        while waiting or running:
            while waiting and refused is None and len(running) < cores:
                words = waiting.pop(0)
                running[pool.submit(measured, tandem, words, wanted[words], deadline - time.monotonic())] = (words, time.monotonic())
            if not running:
                break
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                words, begin = running.pop(future)
                try:
                    for result, value in future.result().items():
                        kept.add(Point(words, result), value, time.monotonic() - begin)
                    done += 1
                except TimeoutError:
                    refused = refused or f"time is over: {total - done} points are missing; the next call goes on with them"
                except Failed as error:
                    refused = str(error)
            show(done, total)
    return refused


def shown(name: str) -> Callable[[int, int], None]:
    """Progress, where a person looks."""
    if not sys.stderr.isatty():
        return lambda done, total: None
    return lambda done, total: print(f"\r{name}: {done} of {total} points ", end="" if done < total else "\n", file=sys.stderr, flush=True)
