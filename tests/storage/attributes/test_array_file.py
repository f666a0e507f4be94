"""Array files: what is written is read; any damage is reported by file and offset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paperwasp.errors import Corruption
from paperwasp.storage.attributes.array_file import read_arrays, write_arrays

ARRAYS: dict[str, np.ndarray] = {
    "values": np.arange(5, dtype=np.int32),
    "none": np.zeros(0, np.float64),
    "gids": np.arange(24, dtype=np.uint8).reshape(2, 12),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", ARRAYS)
    found = read_arrays(tmp_path / "a")
    assert list(found) == list(ARRAYS)
    for name, values in ARRAYS.items():
        assert found[name].dtype == values.dtype and found[name].tolist() == values.tolist()


def test_damage_anywhere_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_arrays(path, ARRAYS)
    data = path.read_bytes()
    padding = [place for place in range(len(data)) if is_padding(data, place)]
    for place in set(range(len(data))) - set(padding):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(Corruption, match=r"a: offset \d+: "):
            read_arrays(path)
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(Corruption, match=r"a: offset \d+: "):
            read_arrays(path)


def is_padding(data: bytes, place: int) -> bool:
    """Between blocks: nothing reads it. Damages nothing, so it need not be noticed."""
    header_end = 20 + int.from_bytes(data[12:16], "little")
    values_start = header_end + -header_end % 64
    gids_start = values_start + 64
    return header_end <= place < values_start or values_start + 20 <= place < gids_start
