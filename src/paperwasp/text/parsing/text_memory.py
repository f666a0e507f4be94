"""Keeps the results of the texts that came last, so that they are not parsed again: as many as have a given number of
characters in all, since what is made of a text takes memory by its length. Any thread may be here.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class TextMemory(Generic[Key, Made]):
    """By key; the oldest makes room. `longest`: what has more characters is not kept."""

    def __init__(self, characters: int, longest: int) -> None:
        self._room, self._longest = characters, longest
        self._lock = Lock()
        self._made: dict[Key, tuple[Made, int]] = {}
        self.characters = 0

    def __len__(self) -> int:
        return len(self._made)

    def get(self, key: Key) -> Made | None:
        found = self._made.get(key)
        return None if found is None else found[0]

    def add(self, key: Key, made: Made, characters: int) -> None:
        """Keeps what was made of a text with this number of characters."""
        if characters > self._longest:
            return
        with self._lock:
            if key in self._made:
                return
            self._made[key] = made, characters
            self.characters += characters
            while self.characters > self._room:
                self.characters -= self._made.pop(next(iter(self._made)))[1]
