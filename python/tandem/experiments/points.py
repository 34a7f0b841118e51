# python/tandem/experiments/points.py: commands that run side by side, and what they measured, kept.
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Optional

Words = tuple[str, ...]


class Failed(RuntimeError):
    """A command that did not end well. Its text has the command and its last words."""


class Kept:
    """Results in a file, a line for each, so that an experiment that was interrupted goes on. Lines of other versions of Tandem do not count."""

    def __init__(self, file: Path, version: str) -> None:
        self.file = file
        self.version = version
        self.values: dict[Words, float] = {}
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
                    self.values[tuple(found["words"])] = float(found["value"])
            except (ValueError, KeyError, TypeError):
                continue  # no whole line

    def add(self, words: Words, value: float, seconds: float) -> None:
        self.values[words] = value
        line = json.dumps({"words": words, "value": value, "seconds": round(seconds, 3), "version": self.version})
        with self.file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def measured(tandem: str, words: Words, result: str, limit_s: float) -> float:
    """Runs `tandem WORDS`, and takes a number of the first result that it prints as JSON: "value", or one of its params."""
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
        found = report["results"][0]
        return float(found["value"] if result == "value" else found["params"][result])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Failed(f"tandem {' '.join(words)}: printed no {result} of a result as JSON (--json)") from error


def run_all(tandem: str, commands: Sequence[Words], result: str, kept: Kept, deadline: float,
            show: Callable[[int, int], None]) -> Optional[str]:
    """Runs what is not kept yet, on all processors, until `deadline` (`time.monotonic`). Returns why some are missing."""
    waiting = [words for words in dict.fromkeys(commands) if words not in kept.values]
    total, done, cores = len(waiting), 0, len(os.sched_getaffinity(0))
    refused: Optional[str] = None
    running: dict[Future[float], tuple[Words, float]] = {}
    with ThreadPoolExecutor(cores) as pool:
        while waiting or running:
            while waiting and refused is None and len(running) < cores:
                words = waiting.pop(0)
                running[pool.submit(measured, tandem, words, result, deadline - time.monotonic())] = (words, time.monotonic())
            if not running:
                break
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                words, begin = running.pop(future)
                try:
                    kept.add(words, future.result(), time.monotonic() - begin)
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
