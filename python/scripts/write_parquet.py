#!/usr/bin/env python3
# python/scripts/write_parquet.py: packs the plain columns of `tandem trace export --format parquet` into Parquet files.
"""Read schema.json and one file per column, little-endian and without headers, and write one Parquet file per table."""

import argparse
import json
import os
import sys

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    sys.exit(f"{sys.executable} has no {error.name}: run `scripts/setup --analysis`, or `pip install pyarrow numpy` and set "
             "TANDEM_PYTHON")

ROWS_AT_ONCE = 1 << 20
# The type of each kind in the file, and the value that stands for a missing one.
KINDS = {"time": ("<i8", -(1 << 63)), "id": ("<u8", 1 << 63), "number": ("<u4", (1 << 32) - 1), "worker": ("<u2", (1 << 16) - 1),
         "u64": ("<u8", None), "i64": ("<i8", None), "i32": ("<i4", None), "flag": ("u1", None), "real": ("<f8", None),
         "text": ("<u4", None)}


def arrow_type(kind):
    if kind == "text":
        return pa.string()
    if kind == "flag":
        return pa.bool_()
    return pa.from_numpy_dtype(np.dtype(KINDS[kind][0]))


def open_column(folder, table, column):
    dtype = np.dtype(KINDS[column["kind"]][0])
    path = os.path.join(folder, f"{table['name']}.{column['name']}")
    if os.path.getsize(path) != table["rows"] * dtype.itemsize:
        sys.exit(f"{path}: has {os.path.getsize(path)} bytes instead of {table['rows']} times {dtype.itemsize}")
    return np.memmap(path, dtype=dtype, mode="r") if table["rows"] else np.empty(0, dtype)


def to_arrow(values, kind, texts):
    values = np.asarray(values)
    if kind == "text":
        used, places = np.unique(values, return_inverse=True)
        return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), texts.take(pa.array(used))).cast(pa.string())
    if kind == "flag":
        return pa.array(values.astype(bool))
    nothing = KINDS[kind][1]
    return pa.array(values, mask=None if nothing is None else values == nothing)


def write_table(folder, output, table, texts, about, compression):
    columns = table["columns"]
    schema = pa.schema([(column["name"], arrow_type(column["kind"])) for column in columns],
                       metadata={f"tandem.{key}": str(value) for key, value in about.items()})
    sources = [open_column(folder, table, column) for column in columns]
    with pq.ParquetWriter(os.path.join(output, table["name"] + ".parquet"), schema, compression=compression) as writer:
        for begin in range(0, table["rows"], ROWS_AT_ONCE):
            arrays = [to_arrow(source[begin:begin + ROWS_AT_ONCE], column["kind"], texts)
                      for source, column in zip(sources, columns)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="with schema.json and the columns")
    parser.add_argument("output", help="folder of the Parquet files")
    parser.add_argument("--compression", default="zstd", help="zstd, gzip or none (default: %(default)s)")
    arguments = parser.parse_args()
    with open(os.path.join(arguments.folder, "schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    texts = pa.array(schema["texts"], pa.string())
    for table in schema["tables"]:
        write_table(arguments.folder, arguments.output, table, texts, schema["about"], arguments.compression)


if __name__ == "__main__":
    main()
