# python/tandem/_columns.py: arrays of the extension as Arrow arrays, on the same memory.
"""The extension marks what is not known by a number; here it becomes null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from ._native import Column, Texts

# The value that stands for a missing one, of each kind of tandem/analysis/tables.hpp that has one.
NOTHING = {"time": np.iinfo(np.int64).min, "id": 1 << 63, "number": (1 << 32) - 1, "worker": (1 << 16) - 1}


def numbers(values: npt.NDArray[Any], nothing: Optional[int] = None) -> pa.Array:
    """An Arrow array on the memory of `values`; entries equal to `nothing` are null."""
    bitmap, nulls = None, 0
    if nothing is not None:
        known = values != np.array(nothing, values.dtype)
        nulls = values.size - int(np.count_nonzero(known))
        if nulls > 0:
            bitmap = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [bitmap, pa.py_buffer(values)], nulls)


def texts(values: Texts) -> pa.DictionaryArray:
    """Each text is stored once, and each row holds its number."""
    rows, ends, data = values
    small = int(ends[-1]) < 1 << 31
    offsets = ends.astype(np.int32) if small else ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    dictionary = pa.Array.from_buffers(pa.string() if small else pa.large_string(), ends.size - 1, buffers)
    try:
        dictionary.validate(full=True)
    except pa.ArrowInvalid:  # names that the program did not write in UTF-8
        raw = dictionary.view(pa.binary() if small else pa.large_binary())
        dictionary = pa.array([text.decode(errors="replace") for text in raw.to_pylist()], dictionary.type)
    return pa.DictionaryArray.from_arrays(numbers(rows), dictionary)


def arrow(values: Column, kind: str = "") -> pa.Array:
    """A column of the extension, of a kind of tandem/analysis/tables.hpp."""
    if isinstance(values, tuple):
        return texts(values)
    if kind == "flag":
        return pa.Array.from_buffers(pa.bool_(), values.size, [None, pa.py_buffer(np.packbits(values, bitorder="little"))])
    return numbers(values, NOTHING.get(kind))


def as_numpy(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """The values of a column without nulls."""
    values: npt.NDArray[Any] = column.combine_chunks().to_numpy(zero_copy_only=False)
    return values


def codes(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], list[str]]:
    """The number of each row's text, and the texts. Texts that no row has may be among them."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], column.type)
    return array.indices.to_numpy(zero_copy_only=False), array.dictionary.to_pylist()
