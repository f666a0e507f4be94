"""Texts as numbers: in ranking expressions a text is its hash, so that texts can be compared.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#expressions (strings); the hash is that of
Java's strings, over the bytes of UTF-8, as a number without sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_WORD: Final = 0xFFFFFFFF


def text_hash(text: str) -> float:
    """The number that stands for a text."""
    value = 0
    for byte in text.encode(errors="surrogatepass"):
        value = value * 31 + (byte if byte < 128 else byte - 256) & _WORD
    return float(value)


def text_hashes(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.array([text_hash(text) for text in texts], np.float64)


def text_number(text: str) -> float:
    """The number that a text given as input is: what it says if it is a number, else its hash, without a leading '."""
    try:
        return float(text if "_" not in text else "")
    except ValueError:
        return text_hash(text[1:] if text.startswith("'") else text)
