"""Patterns look through a dictionary in pieces: nothing is missed between them, and time may be over there."""

from __future__ import annotations

import random
from time import process_time

import numpy as np
import pytest

from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.errors import InvalidQuery
from paperwasp.storage.attributes import patterns
from paperwasp.storage.attributes.dictionary import BETWEEN_CLOCKS, ScannedText, TextKeeper
from paperwasp.storage.attributes.patterns import FuzzyPattern, PartPattern, RegexPattern, TextPattern, no_clock
from tests.chance import SEED

PATTERNS: tuple[TextPattern, ...] = (
    PartPattern("prefix", "ab"),
    PartPattern("suffix", "b"),
    PartPattern("substring", "a\nb"),
    FuzzyPattern("abab", 1, 0, False),
    FuzzyPattern("abab", 3, 1, True),
    FuzzyPattern("abab", 9, 0, False),
    RegexPattern("a.b"),
    RegexPattern("^ab|ba$"),
    RegexPattern(r"\Aa[\s\S]*b\z"),
    RegexPattern(""),
)


def test_groups_of_a_pattern_cost_nothing() -> None:
    """What RE2 keeps of ten thousand groups would take a millisecond for each byte."""
    text = TextKeeper(cased=False).text([f"value {number}" for number in range(2000)])
    started = process_time()
    assert RegexPattern("(" * 900 + "()" * 4000 + "value" + ")" * 900).fitting(text).all()
    assert process_time() - started < 5


def test_a_text_goes_on_where_time_was_over() -> None:
    strings = [f"Word {number}" for number in range(2 * BETWEEN_CLOCKS + 5)]
    keeper = TextKeeper(cased=False)
    for _ in range(3):
        end_work_at(1)
        with pytest.raises(OutOfTime):
            keeper.text(strings)
        end_work_at(0)
    made, whole = keeper.text(strings), TextKeeper(cased=False).text(strings)
    assert (made.content.tobytes(), made.ends.tolist()) == (whole.content.tobytes(), whole.ends.tolist())
    assert made.one(2 * BETWEEN_CLOCKS + 4) == b"word 20004"


def test_an_expression_of_too_many_characters_is_refused() -> None:
    text = TextKeeper(cased=False).text(["a"])
    with pytest.raises(InvalidQuery, match="at most 65536 characters, not 65537"):
        RegexPattern("[" + "a" * 65535 + "]").fitting(text)


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_pieces_find_what_the_whole_does(pattern: TextPattern, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = SEED
    chance = random.Random(seed)
    strings = ["", *("".join(chance.choices("abé\n", k=chance.randrange(9))) for _ in range(400))]
    text = TextKeeper(cased=False).text(strings)
    monkeypatch.setattr(patterns, "_LEAST_BYTES", 1 + seed % 40)
    looks: list[None] = []
    in_pieces = pattern.fitting_in_time(text, lambda: looks.append(None))
    assert in_pieces.tolist() == pattern.fitting(text).tolist(), seed
    assert len(looks) > 3, seed
    assert pattern.fitting_in_time(text.part(0, 1), no_clock).tolist() == in_pieces[:1].tolist()


def test_a_costly_pattern_ends_when_the_time_is_over() -> None:
    """A thousand characters against long strings: all of them would take hours."""
    ends = np.cumsum(np.full(100_000, 4000, np.uint64))
    content = np.full(int(ends[-1]) + 3, ord("x"), np.uint8)
    text = ScannedText(content, ends, np.zeros(len(ends), np.bool_), False)
    looks: list[None] = []

    def check_time() -> None:
        looks.append(None)
        if len(looks) > 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        FuzzyPattern("y" * 1000, 3500, 0, False).fitting_in_time(text, check_time)
