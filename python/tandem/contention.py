# python/tandem/contention.py: models of memory contention: read, fitted, asked.
"""What computing cores and the network leave each other, by the models of docs/contention.md.

    from tandem import contention

    models = contention.load("results")          # a campaign of `tandem contention measure`, which is fitted now
    models.errors                                 # of both models, in per cent
    models.predict(cores=[4, 8, 16]).to_pandas()  # a row for each number of cores and placement of data
    contention.load("henri").predict()            # a machine of the thesis

Bandwidths are in MB/s, 10^6 bytes per second, of all computing cores together.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, Optional, Union

import pyarrow as pa
import pyarrow.csv

from . import _columns
from ._native import ContentionError, ContentionModels, contention_platforms

__all__ = ["ContentionError", "Models", "load", "platforms", "samples"]

Placement = tuple[int, int]


def platforms() -> list[str]:
    """The machines of the thesis (appendix E), which `load` knows by name."""
    return contention_platforms()


def load(source: Union[str, os.PathLike[str]], *, kernel: str = "", cursor: Optional[int] = None, message_bytes: int = 0,
         nodes_per_socket: int = 0, hold_out: bool = False) -> Models:
    """Both models of a machine.

    source: a folder of `tandem contention measure` or a samples.csv, which are fitted; a file of `tandem contention fit -o`; or a name of
    `platforms`. Of a campaign, `kernel`, `cursor` and `message_bytes` choose what was measured (default: memset, the least, the largest);
    `nodes_per_socket` is needed where only samples.csv is there. `hold_out`: the soft model too learns from two placements alone.
    Raises `ContentionError`.
    """
    return Models(ContentionModels(os.fspath(source), kernel, cursor, message_bytes, nodes_per_socket, hold_out))


def samples(source: Union[str, os.PathLike[str]]) -> pa.Table:
    """What a campaign has measured: its samples.csv, a row for each measurement. Raises `FileNotFoundError`."""
    path = os.fspath(source)
    return pyarrow.csv.read_csv(os.path.join(path, "samples.csv") if os.path.isdir(path) else path)


class Models:
    """The thesis's model and the soft one of a machine. Made by `load`; does not change."""

    def __init__(self, native: ContentionModels) -> None:
        self._native = native
        self._json: dict[str, Any] = json.loads(native.json())

    def __repr__(self) -> str:
        return f"<tandem.contention.Models of {self.name}: {self.cores} cores, {self.nodes} NUMA nodes>"

    @property
    def name(self) -> str:
        """Of the campaign, file or machine."""
        return str(self._json["name"])

    @property
    def cores(self) -> int:
        """With so many computing cores the parameters were found, at most."""
        return self._native.cores

    @property
    def nodes(self) -> int:
        """NUMA nodes of the machine; those of the cores' socket come first."""
        return self._native.nodes

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Of model "thesis" and "soft": for data on the cores' own socket ("local"), on another one ("remote"), and more of the soft one."""
        return {name: {key: value for key, value in self._json[stored].items() if key not in ("intervals", "errors_percent")}
                for name, stored in (("thesis", "threshold"), ("soft", "soft"))}

    @property
    def intervals(self) -> dict[str, dict[str, Any]]:
        """95 % intervals of the parameters, [low, high]; empty where they do not come from a campaign."""
        return {name: self._json[stored].get("intervals", {}) for name, stored in (("thesis", "threshold"), ("soft", "soft"))}

    @property
    def errors(self) -> dict[str, dict[str, Any]]:
        """Mean absolute percentage errors, as table 6.1 of the thesis has them; empty where they do not come from a campaign."""
        return {name: self._json[stored].get("errors_percent", {}) for name, stored in (("thesis", "threshold"), ("soft", "soft"))}

    def predict(self, cores: Optional[Iterable[int]] = None, placements: Optional[Iterable[Placement]] = None, *, model: str = "soft",
                intensity: float = 0, cached: float = 0, message_bytes: int = 0, device_gb_s: float = 0) -> pa.Table:
        """Bandwidths under a load, a row for each number of cores and placement.

        cores: that compute (default: from 1 to `cores`). placements: pairs of NUMA nodes, of the cores' data and of the network's (default:
        all). model: "soft" or "thesis". Of the soft model: `intensity` of the kernel (flop per byte), `cached` (share of its accesses that caches
        serve), `message_bytes`, and `device_gb_s` of copies to a device at the same time. Predictions of a fitted soft model have
        95 % intervals in columns that end in _low and _high. Raises `ContentionError` where the campaign has not measured what is asked for,
        `ValueError` for other arguments.
        """
        if model not in ("soft", "thesis"):
            raise ValueError(f"model is 'soft' or 'thesis', not {model!r}")
        if model == "thesis" and (intensity or cached or message_bytes or device_gb_s):
            raise ValueError("intensity, cached, message_bytes and device_gb_s are for the soft model: the thesis's does not know them")
        if intensity < 0 or not 0 <= cached <= 1 or message_bytes < 0 or device_gb_s < 0:
            raise ValueError("intensity, message_bytes and device_gb_s are not negative, and cached lies between 0 and 1")
        counts = list(range(1, self.cores + 1)) if cores is None else [int(count) for count in cores]
        if placements is None:
            where = [(computation, communication) for communication in range(self.nodes) for computation in range(self.nodes)]
        else:
            where = [(int(computation), int(communication)) for computation, communication in placements]
        if any(count < 0 for count in counts):
            raise ValueError("cores are not negative")
        if any(not 0 <= node < self.nodes for pair in where for node in pair):
            raise ValueError(f"placements name NUMA nodes from 0 to {self.nodes - 1}")
        columns = self._native.predict(model, counts, where, intensity, cached, message_bytes, 1e3 * device_gb_s)
        return pa.table({name: _columns.numbers(values) for name, values in columns.items()})

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a file that `load` and `tandem contention predict` read."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._json, file, indent=2)
            file.write("\n")
