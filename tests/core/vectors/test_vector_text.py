"""The kernel that reads the vector of a request reads what the plain twin reads: the numbers of a JSON array."""

from __future__ import annotations

import random

import numpy as np
import pytest

from paperwasp.core import _core
from tests.oracles import vector_text

PARTS = (
    *(
        "0",
        "-0",
        "-0.0",
        "1",
        "-17",
        "2.5",
        "1e3",
        "1E-3",
        "-1.25e+2",
        "0.1",
        "123456789012345678",
        "1234567890123456789",
    ),
    *(
        "0.054619789123535156",
        "1e308",
        "1e309",
        "3.4028236e38",
        "5e-300",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "nan",
        "true",
        '"1"',
    ),
    *("0." + "1" * 70, "[1]", "", "null"),
)
SPACES = ("", "", "", " ", "\n", "\t ")


def test_arrays_are_read_as_by_the_twin() -> None:
    choice, read = random.Random(5), 0
    for _ in range(4000):
        numbers = [choice.choice(PARTS[:10]) if choice.random() < 0.9 else choice.choice(PARTS) for _ in range(3)]
        numbers += [repr(choice.uniform(-1, 1) * 10.0 ** choice.randint(-20, 20)) for _ in range(choice.randint(0, 3))]
        body = ",".join(choice.choice(SPACES) + number + choice.choice(SPACES) for number in numbers)
        text = f"{choice.choice(SPACES)}[{body}]{choice.choice(SPACES)}".encode()
        count = len(numbers) + choice.choice((0, 0, 0, 0, 1, -1))
        found, wanted = _core.read_vector(text, count), vector_text.read_vector(text, count)
        assert (found is None) == (wanted is None), text
        if found is not None and wanted is not None:
            assert found.tobytes() == wanted.tobytes(), text
            read += 1
    assert read > 400


@pytest.mark.parametrize("text", [b"", b"[", b"]", b"[1,]", b"[1] x", b"1", b"[1 2]", b"{}", b"[1,2"])
def test_what_is_no_array_is_not_read(text: bytes) -> None:
    assert [_core.read_vector(text, count) for count in (1, 2)] == [None, None]
    assert _core.read_vector(b" [ ] ", 0) is not None


def test_angles_and_norms_are_what_numpy_finds() -> None:
    cosines = np.random.default_rng(3).uniform(-1, 1, 500)
    found = _core.angles_of(1.0 - np.array([*cosines, 2.0, -2.0]))
    assert np.allclose(found, np.arccos(np.clip([*cosines, 2.0, -2.0], -1, 1)), rtol=1e-7, atol=1e-7)
    for cells in (np.arange(5, dtype=np.float32), np.arange(5.0), np.arange(-2, 3, dtype=np.int8)):
        assert _core.norm_of_query(cells) == np.square(cells.astype(np.float64)).sum()
    assert _core.norm_of_query(np.zeros(4, np.float32)) == 1.0
