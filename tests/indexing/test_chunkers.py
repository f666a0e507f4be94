"""Chunks of texts of all kinds: what is promised of them, and in a time that grows with the text, not its square."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.indexing.components import Context, FixedLengthChunker, SentenceChunker

CONTEXT = Context("t.f")
LENGTH = 300_000
CONTENT = regex.compile(r"[\p{L}\p{Nd}\p{M}\p{So}\u3008-\u3011]")


def sentences(text: str) -> list[str]:
    """By the definition, a character at a time: a chunk ends behind the last of the signs that follow a letter, a digit
    or a symbol, and whatever stands between."""
    found, chunk, has_content, has_end = [], "", False, False
    for character in text:
        is_end = character in ".!?\u203d\u1362\u0964\u0965\u2e2e\u061f\uff01\uff1f\uff61\u3002"
        if has_end and not is_end:
            found.append(chunk)
            chunk, has_content, has_end = "", False, False
        chunk += character
        has_content = has_content or CONTENT.match(character) is not None
        has_end = has_content and is_end
    return [*found, chunk] if chunk else found


@given(st.text(st.sampled_from("ab1.!? \n-\u3002\u263a")))
def test_sentences(text: str) -> None:
    assert SentenceChunker().chunk(text, CONTEXT) == sentences(text)


@pytest.mark.parametrize("piece", [".", " ", "\n", "-", "a", "a. ", "?! ", "\u3002", "\u263a"])
def test_long_texts(piece: str) -> None:
    text = f"A text. {piece * LENGTH}"
    for chunker in (SentenceChunker(), FixedLengthChunker()):
        chunks = chunker.chunk(text, CONTEXT)
        assert "".join(chunks) == text and all(chunks)
