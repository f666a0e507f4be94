"""The kernel of global ids: the same as hashlib's MD5s, whatever the strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.oracles.global_id import global_id

TEXTS = st.text(st.characters(codec=None), max_size=300) | st.text(st.characters(categories=["Cs"]), max_size=5)


@given(TEXTS, TEXTS)
def test_as_the_twin(location: str, id: str) -> None:
    assert _core.global_id(location, id) == global_id(location, id)


@pytest.mark.parametrize("length", [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 1000])
def test_around_the_ends_of_blocks(length: int) -> None:
    text = "x" * length
    assert _core.global_id(text, "") == global_id(text, "")
    assert _core.global_id("", text) == global_id("", text)


def test_the_vectors_of_rfc_1321() -> None:
    for text, digest in (
        ("", "d41d8cd98f00b204e9800998ecf8427e"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ("1234567890" * 8, "57edf4a22be3c955ac49da2e2107b67a"),
    ):
        assert _core.global_id(text, text).hex() == digest[:24]


def test_only_strings_are_taken() -> None:
    with pytest.raises(TypeError):
        _core.global_id(b"bytes", "text")  # type: ignore[arg-type]
