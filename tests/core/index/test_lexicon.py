"""The tokenizer and its table of words."""

from __future__ import annotations

import re
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core

texts = st.lists(st.text(alphabet=string.printable, max_size=60), max_size=8)


@given(texts)
def test_tokens_are_lower_cased_runs_of_letters_and_digits(values: list[str]) -> None:
    lexicon = _core.Lexicon()
    owners = np.arange(len(values), dtype=np.uint32)
    ids, positions, offsets, *_ = lexicon.tokenize(values, owners, len(values))
    for i, value in enumerate(values):
        mine = slice(int(offsets[i]), int(offsets[i + 1]))
        assert [lexicon.text(t) for t in ids[mine].tolist()] == [w.lower() for w in re.findall("[A-Za-z0-9]+", value)]
        assert positions[mine].tolist() == list(range(len(ids[mine])))


def test_elements_of_an_array_are_a_gap_apart() -> None:
    lexicon = _core.Lexicon()
    ids, positions, offsets, *_ = lexicon.tokenize(["a b", "c", "d"], np.array([0, 0, 2], np.uint32), 3)
    assert [lexicon.text(i) for i in ids.tolist()] == ["a", "b", "c", "d"]
    assert positions.tolist() == [0, 1, 102, 0]
    assert offsets.tolist() == [0, 3, 3, 4]


def test_words_of_more_than_1000_bytes_are_not_indexed() -> None:
    lexicon = _core.Lexicon()
    ids, *_ = lexicon.tokenize(["x" * 1000 + " " + "y" * 1001 + " z"], np.zeros(1, np.uint32), 1)
    assert [lexicon.text(i) for i in ids.tolist()] == ["x" * 1000, "z"]


@given(
    st.lists(st.sampled_from([*"abcdefgh", "Word", "x" * 70, "y" * 999, "z" * 1001]), max_size=120), st.integers(1, 3)
)
def test_long_texts_are_read_as_short_ones(words: list[str], parts: int) -> None:
    """Words are looked up some at once, whatever is new among them."""
    one, many = _core.Lexicon(), _core.Lexicon()
    ids, positions, *_ = one.tokenize(["-".join(words * parts)], np.zeros(1, np.uint32), 1)
    each, _, offsets, _ = many.tokenize(
        words * parts, np.arange(len(words * parts), dtype=np.uint32), len(words * parts)
    )
    assert ids.tolist() == each.tolist()
    assert positions.tolist() == list(range(int(offsets[-1])))
    assert one.words_from(0)[0] == many.words_from(0)[0]


def test_stems_are_learnt_once() -> None:
    lexicon = _core.Lexicon()
    ids, *_ = lexicon.tokenize(["cats cat cats"], np.zeros(1, np.uint32), 1)
    unknown = lexicon.unknown(1, ids)
    assert [lexicon.text(i) for i in unknown] == ["cats", "cat"]
    with pytest.raises(ValueError, match="without a term"):
        lexicon.to_terms(1, ids.copy())
    lexicon.learn(1, unknown, ["cat", "cat"])
    assert lexicon.unknown(1, ids) == []
    lexicon.to_terms(1, ids)
    assert {lexicon.text(i) for i in ids.tolist()} == {"cat"}


@given(st.lists(st.text(alphabet="abcdeé", min_size=1, max_size=5), unique=True, max_size=300))
def test_words_are_saved_and_restored(words: list[str]) -> None:
    lexicon = _core.Lexicon()
    ids, *_ = lexicon.tokenize([" ".join(words)], np.zeros(1, np.uint32), 1)
    again = _core.Lexicon()
    again.add_words(*lexicon.words_from(0))
    assert len(again) == len(words)
    assert [again.find(word) for word in words] == ids.tolist()
    assert again.find("nowhere") == -1


def test_wrong_calls_are_refused() -> None:
    lexicon = _core.Lexicon()
    with pytest.raises(ValueError, match="owners"):
        lexicon.tokenize(["a", "b"], np.array([1, 0], np.uint32), 2)
    with pytest.raises(ValueError, match="no such stemmer"):
        lexicon.unknown(256, np.zeros(0, np.uint32))
    with pytest.raises(ValueError, match="no such word"):
        lexicon.text(5)
