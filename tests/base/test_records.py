"""Records: what there is beside `msgspec.Struct`."""

from __future__ import annotations

import copy
import pickle
from typing import ClassVar

import pytest

from paperwasp.base.records import PartlyCompared, replace


class Part(PartlyCompared, frozen=True, kw_only=True):
    """The base of a tree; where it starts does not matter."""

    UNCOMPARED: ClassVar = frozenset({"start"})

    start: int = 0


class Word(Part, frozen=True):
    text: str


class Pair(Part, frozen=True):
    left: Part
    right: Part


class Nothing(Part, frozen=True):
    pass


def test_records_are_equal_whatever_does_not_matter() -> None:
    left, right = (Pair(Word("a", start=at), Word("b", start=at + 2), start=at) for at in (0, 7))
    assert left == right
    assert hash(left) == hash(right)
    assert left != replace(left, right=Word("c"))
    assert {left: 1}[right] == 1


def test_records_of_other_types_are_not_equal() -> None:
    assert Word("a") != Nothing()
    assert Nothing() == Nothing(start=3)
    assert Nothing().__eq__(1) is NotImplemented


def test_what_does_not_matter_is_not_shown() -> None:
    assert repr(Pair(Word("a", start=3), Nothing())) == "Pair(left=Word(text='a'), right=Nothing())"


def test_records_are_copied_and_pickled_whole() -> None:
    word = Word("a", start=3)
    for again in (copy.copy(word), copy.deepcopy(word), pickle.loads(pickle.dumps(word)), replace(word)):
        assert (again, again.start) == (word, 3)


def test_records_do_not_change() -> None:
    with pytest.raises(AttributeError, match="immutable type: 'Word'"):
        Word("a").text = "b"  # type: ignore[misc]
    with pytest.raises(TypeError, match="word"):
        replace(Word("a"), word="b")  # type: ignore[call-arg]
