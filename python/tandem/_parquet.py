# python/tandem/_parquet.py: tables as Parquet files; and the plain columns that the command `tandem` leaves, as tables.
"""A folder of columns holds schema.json and one file per column, little-endian and without headers (tools/trace_export_columns.cpp)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ._columns import arrow

Folder = Union[str, os.PathLike[str]]

ROWS_AT_ONCE = 1 << 20
# The type of each kind of tandem/analysis/tables.hpp in a file.
KINDS = {"time": "<i8", "id": "<u8", "number": "<u4", "worker": "<u2", "u64": "<u8", "i64": "<i8", "i32": "<i4", "flag": "u1",
         "real": "<f8", "text": "<i4"}


def plain(table: pa.Table) -> pa.Table:
    """The same with texts instead of dictionaries."""
    fields = [pa.field(field.name, field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def write_tables(tables: Iterable[tuple[str, pa.Table]], folder: Folder, about: Mapping[str, Any]) -> None:
    """A file for each table; what it is `about` becomes metadata."""
    metadata = {f"tandem.{key}": str(value) for key, value in about.items()}
    for name, table in tables:
        schema = plain(table.slice(0, 0)).schema.with_metadata(metadata)
        with pq.ParquetWriter(os.path.join(folder, f"{name}.parquet"), schema, compression="zstd") as writer:
            for begin in range(0, table.num_rows, ROWS_AT_ONCE):
                writer.write_table(plain(table.slice(begin, ROWS_AT_ONCE)).replace_schema_metadata(metadata))


def read_columns(folder: Folder) -> tuple[Mapping[str, Any], Iterator[tuple[str, pa.Table]]]:
    """What the run is, and its tables, each made when its turn comes."""
    with open(os.path.join(folder, "schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    texts = [text.encode() for text in schema["texts"]]
    ends = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    data = np.frombuffer(b"".join(texts), np.uint8)

    def column(table: Mapping[str, Any], entry: Mapping[str, Any]) -> pa.Array:
        values = _open_column(os.path.join(folder, f"{table['name']}.{entry['name']}"), table["rows"], KINDS[entry["kind"]])
        return arrow((values, ends, data) if entry["kind"] == "text" else values, entry["kind"])

    def tables() -> Iterator[tuple[str, pa.Table]]:
        for table in schema["tables"]:
            names = [entry["name"] for entry in table["columns"]]
            yield table["name"], pa.Table.from_arrays([column(table, entry) for entry in table["columns"]], names=names)

    return schema["about"], tables()


def _open_column(path: str, rows: int, kind: str) -> npt.NDArray[Any]:
    dtype = np.dtype(kind)
    if os.path.getsize(path) != rows * dtype.itemsize:
        raise ValueError(f"{path}: has {os.path.getsize(path)} bytes instead of {rows} times {dtype.itemsize}")
    return np.memmap(path, dtype=dtype, mode="r") if rows else np.empty(0, dtype)
