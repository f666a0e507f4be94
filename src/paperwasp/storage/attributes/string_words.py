"""64 bits of each string of a dictionary, by which distinct strings are counted: made when they are first counted."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.clock import check_time
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.scanned_text import BETWEEN_CLOCKS

Words = NDArray[np.uint64]


class WordKeeper:
    """The words of a growing dictionary. Any thread may ask for them; one at a time makes what is new."""

    __slots__ = ("_lock", "_words")

    def __init__(self) -> None:
        self._words = GrowableArray(np.uint64)
        self._lock = Lock()

    def words(self, strings: Sequence[str]) -> Words:
        """The word of each of these strings, the first of which are those of the last call. Errors: OutOfTime; what was
        made until then is there for the next call."""
        while True:
            with self._lock:
                if len(strings) <= self._words.length:
                    return self._words.view()
                new = strings[self._words.length : self._words.length + BETWEEN_CLOCKS]
                self._words.extend(folded_words([text.encode("utf-8", "surrogatepass") for text in new]))
            check_time()


def folded_words(texts: Sequence[bytes]) -> Words:
    """The exclusive or of the words of 8 bytes of each text, the lowest byte first, the last filled with zeros.

    Vespa: the `hash` of StringResultNode and RawResultNode.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    whole = b"".join([text + b"\0" * (-len(text) % 8) for text in texts])
    ends = np.concatenate([np.zeros(1, np.uint64), np.bitwise_xor.accumulate(np.frombuffer(whole, "<u8"))])
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum((lengths + 7) // 8)])
    found: Words = (ends[bounds[1:]] ^ ends[bounds[:-1]]).astype(np.uint64)
    return found
