"""Texts to tokens: what is indexed depends on the texts and what documents say of their languages, on nothing else."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.plain_fields import PlainFields
from paperwasp.document.types import STRING, DocumentType, array_of
from paperwasp.errors import Corruption
from paperwasp.storage.index import IndexedField, TextIndex
from paperwasp.storage.index.files import describe_file
from paperwasp.storage.index.tokens import ELEMENT_GAP, tokenize, tokenize_plain, tokenize_puts
from paperwasp.text.linguistics import TextProfile, detect_all, detect_puts, index_terms, profile_of, query_terms

GERMAN = "Die Häuser und die Bücher sind nicht alt"
ENGLISH = "The houses and the policies of walking cars"
TEXTS = st.lists(
    st.one_of(
        st.sampled_from([GERMAN, ENGLISH, "cars cars car", "", "日本 cars", "Ελλάδα είναι χώρα cars"]),
        st.text(alphabet="ab éÉß☕-s", max_size=12),
    ),
    max_size=8,
)
PROFILES = st.builds(
    profile_of,
    st.sampled_from(["none", "best", "multiple"]),
    st.booleans(),
    st.sampled_from([None, "word", "gram"]),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([None, 5]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 3]),
)


def naive(profile: TextProfile, text: str, language: str) -> list[tuple[str, ...]]:
    """The terms of each position, with no more of each than the profile allows."""
    seen: Counter[str] = Counter()
    kept = []
    for places in index_terms(profile, text, language):
        seen[places[0]] += 1
        if seen[places[0]] <= profile.max_occurrences:
            kept.append(places)
    return kept


@given(
    PROFILES,
    st.lists(
        st.lists(
            st.sampled_from([None, None, ENGLISH, GERMAN, "cars Car-s", "", " ", "x" * 9, "é", ["cars"]]), max_size=6
        ),
        max_size=3,
    ),
)
def test_plain_fields_have_the_same_tokens_in_fewer_steps(profile: TextProfile, batches: list[list[Any]]) -> None:
    """Words get the same numbers; where a field is not plain, none was given any."""
    short, general = _core.Lexicon(), _core.Lexicon()
    for values in batches:
        texts = [text for value in values if value is not None for text in ([value] if type(value) is str else value)]
        owners = [owner for owner, value in enumerate(values) if value is not None]
        found, words = tokenize_plain(short, profile, values), len(short)
        if found is None:
            assert words == len(general)
            tokenize(short, profile, texts, owners, len(values))
        terms, positions, offsets, _ = tokenize(general, profile, texts, owners, len(values))
        assert len(short) == len(general)
        if found is not None:
            assert [each.tolist() for each in found[:3]] == [terms.tolist(), positions.tolist(), offsets.tolist()]
            assert found[3] == np.count_nonzero(np.diff(offsets))


def test_plain_english_is_tokenized_in_few_steps() -> None:
    lexicon, profile = _core.Lexicon(), TextProfile()
    found = tokenize_plain(lexicon, profile, [ENGLISH, None, "cars"])
    assert found is not None and found[3] == 2
    for value in (GERMAN, "é", ["cars"], "x" * (profile.max_length + 1), 1):
        assert tokenize_plain(lexicon, profile, [ENGLISH, value]) is None  # type: ignore[list-item]


PUTS = PlainFields(DocumentType("thing", {"text": STRING, "texts": array_of(STRING)}))
FOREIGN = "die Autos und der Mann sind nicht alt"
VALUES = st.lists(
    st.one_of(
        st.sampled_from([None, ENGLISH, FOREIGN, " \t\n" + FOREIGN, "'" + FOREIGN, "x" * 9, "é", "\ta", ["cars"]]),
        st.text(alphabet='ab "\\\n-s', max_size=12),
    ),
    max_size=6,
)


def put_of(number: int, value: Any) -> PlainChange:
    fields = {} if value is None else {"texts" if isinstance(value, list) else "text": value}
    found = PUTS.read_change("id:n:thing::", str(number), orjson.dumps({"fields": fields}), False)
    assert isinstance(found, PlainChange)
    return found


@given(PROFILES, VALUES)
def test_texts_of_plain_puts_are_tokenized_as_their_values(profile: TextProfile, values: list[Any]) -> None:
    puts = [put_of(number, value) for number, value in enumerate(values)]
    one, other = _core.Lexicon(), _core.Lexicon()
    for name in ("text", "texts", "unknown"):
        found = tokenize_puts(one, profile, puts, name)
        of_name: list[Any] = [put.get(name) for put in puts]
        wanted = tokenize_plain(other, profile, of_name)
        assert (found is None) == (wanted is None) and len(one) == len(other)
        if found is not None and wanted is not None:
            assert [each.tolist() for each in found[:3]] == [each.tolist() for each in wanted[:3]]
            assert found[3] == wanted[3]


@given(VALUES)
def test_languages_of_plain_puts_are_those_of_their_values(values: list[Any]) -> None:
    puts = [put_of(number, value) for number, value in enumerate(values)]
    texts = ["" if value is None or isinstance(value, list) else value for value in values]
    assert detect_puts(puts, "text") == (detect_all(texts) if all(map(str.isascii, texts)) else None)


@given(
    PROFILES, TEXTS, st.lists(st.integers(0, 3), max_size=8), st.lists(st.sampled_from(["", "de", "xx"]), max_size=8)
)
def test_tokens_are_those_of_each_text(
    profile: TextProfile, texts: list[str], owners: list[int], languages: list[str]
) -> None:
    count = min(len(texts), len(owners), len(languages))
    texts, owners, languages = texts[:count], sorted(owners[:count]), languages[:count]
    lexicon = _core.Lexicon()
    terms, positions, offsets, ends = tokenize(lexicon, profile, texts, owners, 4, languages)
    wanted: list[tuple[str, int]] = []
    wanted_ends: list[int] = []
    bounds = [0]
    for owner in range(4):
        position = 0
        for number, text in enumerate([text for text, own in zip(texts, owners, strict=True) if own == owner]):
            language = [tag for tag, own in zip(languages, owners, strict=True) if own == owner][number]
            position += ELEMENT_GAP if number else 0
            for places in naive(profile, text, language):
                wanted.extend((term, position) for term in places)
                position += 1
            wanted_ends.append(position)
        bounds.append(len(wanted))
    found = [(lexicon.text(term), position) for term, position in zip(terms.tolist(), positions.tolist(), strict=True)]
    assert found == wanted
    assert offsets.tolist() == bounds
    assert ends.tolist() == wanted_ends


@given(PROFILES, st.text(max_size=40), st.sampled_from(["en", "de", "ru"]))
def test_a_query_asks_for_what_was_indexed(profile: TextProfile, text: str, language: str) -> None:
    indexed = index_terms(profile, text, language)
    asked = query_terms(profile, text, language)
    assert len(indexed) == len(asked)
    for places, token in zip(indexed, asked, strict=True):
        assert {form for form, _ in token.forms} == set(places)
    in_phrase = query_terms(profile, text, language, in_phrase=True)
    assert [token.term for token in in_phrase] == [places[0] for places in indexed]


def words_of(index: TextIndex, field: str, lid: int) -> list[str]:
    """The terms of a document, by position."""
    snapshot = index.snapshot()
    number = snapshot.number_of(("music", field))
    found = []
    for term in ("haus", "hauser", "houses", "house", "car", "cars", "buch", "policy", "policies", "bucher"):
        known = snapshot.term_id(term)
        if known >= 0:
            lids = [int(place) for place in snapshot.phrase(number, (known,), None)[0]]
            found += [term] * (lid in lids)
    return found


def test_the_language_of_a_document_is_detected_or_said(tmp_path: Path) -> None:
    index = TextIndex(tmp_path)
    index.configure([IndexedField("music", "title")])
    index.add_batch(0, "music", [{"title": GERMAN}, {"title": ENGLISH}])
    index.add_batch(2, "music", [{"title": "Häuser"}, {"title": "Häuser"}], [{"title": "de"}, {}])
    assert words_of(index, "title", 0) == ["haus", "buch"]
    assert words_of(index, "title", 1) == ["house", "car", "policy"]
    assert words_of(index, "title", 2) == ["haus"]
    assert words_of(index, "title", 3) == ["hauser"]


def test_stems_of_all_languages_are_saved_and_restored(tmp_path: Path) -> None:
    index = TextIndex(tmp_path)
    index.configure([IndexedField("music", "title")])
    index.add_batch(0, "music", [{"title": GERMAN}, {"title": ENGLISH}])
    state = index.flush(index.freeze())
    again = TextIndex(tmp_path)
    again.load(state)
    again.add_batch(2, "music", [{"title": GERMAN}])
    assert words_of(again, "title", 0) == words_of(again, "title", 2) == ["haus", "buch"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:7] + b"\x01" + data[8:], "written by a version that stems English otherwise"),
        (lambda data: data.replace(b"krovetz", b"krovets"), "stems of an unknown stemmer 'krovets'"),
        (lambda data: data[:-1], "not a saved lexicon"),
    ],
)
def test_a_lexicon_that_is_not_understood_stops_the_start(tmp_path: Path, change: object, message: str) -> None:
    index = TextIndex(tmp_path)
    index.configure([IndexedField("music", "title")])
    index.add_batch(0, "music", [{"title": ENGLISH}])
    state = index.flush(index.freeze())
    path = tmp_path / state["words"][0]["name"]
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    state["words"] = [describe_file(path)]
    with pytest.raises(Corruption, match=message):
        TextIndex(tmp_path).load(state)


def test_ten_million_characters(tmp_path: Path) -> None:
    """Only the first million is cut into words, of which no more than ten thousand of a kind are indexed."""
    lexicon = _core.Lexicon()
    text = "blue é trains   " * 750_000
    assert len(text) > 10_000_000
    terms, positions, _, ends = tokenize(lexicon, profile_of("best", True, None), [text], [0], 1)
    counts = Counter(terms.tolist())
    assert {lexicon.text(term): count for term, count in counts.items()} == {
        "blue": 10_000,
        "e": 10_000,
        "train": 10_000,
    }
    assert ends.tolist() == [30_000] == [len(positions)]
    assert positions.tolist() == list(range(30_000))


def test_a_word_and_its_stem_stand_at_one_place() -> None:
    lexicon = _core.Lexicon()
    profile = profile_of("multiple", True, None)
    terms, positions, offsets, _ = tokenize(lexicon, profile, ["walking cars", "of cars"], [0, 1], 2)
    field_index = _core.invert(terms, positions, offsets, 2.0)
    assert _core.describe(field_index)["tokens"] == 4
    runs = groupby(zip(positions.tolist(), map(lexicon.text, terms.tolist()), strict=True), key=lambda pair: pair[0])
    assert [[word for _, word in run] for _, run in runs] == [["walking"], ["car", "cars"], ["of"], ["car", "cars"]]
