"""Texts as numbers: in ranking expressions a text is its hash, so that texts can be compared.

The hash is the XXH3 of its UTF-8 whose 64 bits are read as a double (vespalib's util/string_hash.cpp
and stllike/hash_fun.cpp).
Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#expressions (strings)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core

_EXPONENT: Final = 0x7FF0000000000000
"""These bits are all set in infinities and in what is not a number: the lowest of them is cleared there."""
_CLEARED: Final = 0xFFEFFFFFFFFFFFFF


def text_bits(texts: Sequence[str]) -> NDArray[np.int64]:
    """The bits of the numbers that stand for texts."""
    hashes = np.array([_core.xxh3(text.encode(errors="surrogatepass")) for text in texts], np.uint64)
    is_no_number = hashes & np.uint64(_EXPONENT) == _EXPONENT
    return np.where(is_no_number, hashes & np.uint64(_CLEARED), hashes).view(np.int64)


def text_hash(text: str) -> float:
    """The number that stands for a text."""
    return float(text_bits([text]).view(np.float64)[0])


def text_number(text: str) -> float:
    """The number that a text given as input is: what it says if it is a number, else its hash, without a leading '."""
    try:
        return float(text if "_" not in text else "")
    except ValueError:
        return text_hash(text[1:] if text.startswith("'") else text)
