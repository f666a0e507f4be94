"""The text index beside plain lists of words: visible at once, merged behind, flushed, loaded, damaged.

The worked examples of docs/internals/formats/field-index.md and index.md are what it writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.errors import Corruption
from paperwasp.storage.index import IndexedField, IndexSnapshot, TextIndex
from paperwasp.storage.index.segments import (
    FAN_OUT,
    LEAST_INVERTED_TOKENS,
    LEAST_SEARCHED_TOKENS,
    MEMORY_FAN_OUT,
    SMALLEST_CLASS_TOKENS,
)
from paperwasp.storage.index.text_index import IndexState
from paperwasp.storage.index.tokens import Tokens
from paperwasp.text.linguistics import TextProfile, profile_of

TITLE, LYRICS = ("music", "title"), ("music", "lyrics")
PLAIN = profile_of("none", True, None)
FIELDS = [IndexedField(*TITLE, PLAIN), IndexedField(*LYRICS, PLAIN), IndexedField("book", "title", PLAIN)]
Document = Mapping[str, str | list[str]]


def new_index(directory: Path, fields: Sequence[IndexedField] = FIELDS) -> TextIndex:
    index = TextIndex(directory)
    index.configure(fields)
    return index


def titles(*values: str) -> list[Document]:
    return [{"title": value} for value in values]


def found(snapshot: IndexSnapshot, word: str, key: tuple[str, str] = TITLE) -> list[int]:
    """The lids of documents with a term."""
    term = snapshot.term_id(word)
    lids = np.arange(snapshot.reader.limit, dtype=np.uint32)
    if term < 0:
        return []
    return np.flatnonzero(snapshot.occurrences(snapshot.number_of(key), term, lids)).tolist()


def flush(index: TextIndex) -> IndexState:
    return index.flush(index.freeze())


def bitmap(lids: Sequence[int], limit: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    bits = np.zeros((limit + 63) // 64 * 64, np.uint8)
    bits[list(lids)] = 1
    return np.packbits(bits, bitorder="little").view(np.uint64)


def test_a_batch_is_visible_at_once(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue train", "kind of blue"))
    index.add_batch(2, "book", titles("blue"))
    index.add_batch(3, "music", [{"title": "giant steps", "lyrics": ["feeling blue", "so blue"]}, {}])
    snapshot = index.snapshot()
    assert found(snapshot, "blue") == [0, 1]
    assert found(snapshot, "blue", ("book", "title")) == [2]
    assert found(snapshot, "blue", LYRICS) == [3]
    assert found(snapshot, "green") == []


def test_positions_and_phrases(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue blue train", "train blue"))
    index.add_batch(2, "music", [{"lyrics": ["blue", "train"]}, {"title": "blue train"}])
    snapshot = index.snapshot()
    blue, train = snapshot.term_id("blue"), snapshot.term_id("train")
    offsets, positions = snapshot.positions(0, blue, np.array([0, 1, 3], np.uint32))
    assert [positions[a:b].tolist() for a, b in pairwise(offsets)] == [[0, 1], [1], [0]]
    assert snapshot.phrase(0, [blue, train], None)[0].tolist() == [0, 3]
    assert snapshot.phrase(1, [blue, train], None)[0].tolist() == []
    assert snapshot.field_lengths(0, np.arange(4, dtype=np.uint32)).tolist() == [3, 2, 0, 2]
    assert snapshot.statistics(0) == (3, 7 / 3)


def test_a_snapshot_never_changes(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue"))
    before = index.snapshot()
    for lid in range(1, 100):
        index.add_batch(lid, "music", titles("blue green"))
    index.live = bitmap([], 100)
    flush(index)
    assert found(before, "blue") == [0]
    assert found(before, "green") == []
    assert before.statistics(0) == (1, 1.0)


def test_lengths_are_those_of_live_documents(tmp_path: Path) -> None:
    """Before merging drops what is dead, and after."""
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("a b c", "a", "", "b c"))
    index.add_batch(4, "music", [{"lyrics": ["a b", "a"]}, {"lyrics": ["a"]}, {"lyrics": ["a", "b", "c d e"]}])
    everything, some = bitmap(range(7), 7), bitmap([0, 2, 4, 6], 7)
    for live, dead, title, lyrics in (
        (everything, False, (2.0, 2.0), (3.0, 9 / 6)),
        (some, True, (3.0, 3.0), (4.0, 8 / 5)),
    ):
        assert index.snapshot().live_lengths(0, live, dead) == title
        assert index.snapshot().live_lengths(1, live, dead) == lyrics
    before = index.snapshot()
    assert [before.live_frequency(0, before.term_id(word), some, True) for word in "abc"] == [1, 1, 1]
    index.live = some
    flush(index)
    after = index.snapshot()
    assert after.live_lengths(0, some, True) == (3, 3)
    assert after.live_lengths(1, some, True) == (4, 8 / 5)
    assert before.live_lengths(0, some, True) == (3, 3)


def test_statistics_are_those_of_the_bitmap_that_is_given(tmp_path: Path) -> None:
    """Of one snapshot and several bitmaps in turn."""
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("a b c", "a", "", "b c"))
    snapshot = index.snapshot()
    first, second = bitmap([0, 3], 4), bitmap([1], 4)
    word = snapshot.term_id("a")
    for _ in range(2):
        assert snapshot.live_frequency(0, word, first, True) == 1
        assert snapshot.live_lengths(0, first, True) == (2.5, 2.5)
        assert snapshot.live_frequency(0, word, second, True) == 1
        assert snapshot.live_lengths(0, second, True) == (1.0, 1.0)
        assert snapshot.live_frequency(0, word, second, False) == 2
    changed = bitmap([0, 1, 3], 4)
    assert snapshot.live_frequency(0, word, changed, True) == 2
    assert snapshot.live_lengths(0, changed, True) == (2.0, 2.0)


def test_the_words_of_an_index(tmp_path: Path) -> None:
    """None, before there are documents: a group of a streaming search may be empty."""
    index = new_index(tmp_path)
    assert index.snapshot().words == ()
    index.add_batch(0, "music", titles("blue é blue", "a"))
    assert sorted(index.snapshot().words) == ["a", "blue", "e"]


def test_statistics_are_kept_of_few_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TERM_FREQUENCIES", 2)
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("a b c", "a", "a b"))
    snapshot, live = index.snapshot(), bitmap([0, 2], 3)
    for _ in range(2):
        assert [snapshot.live_frequency(0, snapshot.term_id(word), live, True) for word in "abc"] == [2, 2, 1]


batches = st.lists(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=5).map(" ".join), min_size=1, max_size=6), max_size=40
)


@given(batches=batches, flushed_after=st.sets(st.integers(0, 39)))
def test_any_batches_with_any_flushes(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[str]], flushed_after: set[int]
) -> None:
    """Also after a restart from the last flush, with what came since added anew."""
    directory = tmp_path_factory.mktemp("index")
    index = new_index(directory)
    documents: list[str] = []
    state, saved = flush(index), 0
    for number, batch in enumerate(batches):
        index.add_batch(len(documents), "music", titles(*batch))
        documents += batch
        if number in flushed_after:
            state, saved = flush(index), len(documents)
    check(index.snapshot(), documents)
    again = TextIndex(directory)
    again.load(state)
    check(again.snapshot(), documents[:saved])
    if documents[saved:]:
        again.add_batch(saved, "music", titles(*documents[saved:]))
    check(again.snapshot(), documents)


def check(snapshot: IndexSnapshot, documents: list[str]) -> None:
    for word in "abcdefgh":
        assert found(snapshot, word) == [lid for lid, text in enumerate(documents) if word in text.split()]
    lengths = [len(text.split()) for text in documents]
    assert snapshot.field_lengths(0, np.arange(len(documents), dtype=np.uint32)).tolist() == lengths
    assert snapshot.statistics(0)[0] == sum(length > 0 for length in lengths)


def test_merging_bounds_the_number_of_segments(tmp_path: Path) -> None:
    """A few segments for each size class, however small the batches are."""
    index = new_index(tmp_path)
    most, tokens = 0, 0
    for lid in range(5_000):
        index.add_batch(lid, "music", titles("one two three four five"))
        tokens += 5
        most = max(most, len(index.snapshot().segments))
    classes = 1
    while tokens >= SMALLEST_CLASS_TOKENS:
        tokens //= FAN_OUT
        classes += 1
    assert most <= classes * MEMORY_FAN_OUT
    snapshot = index.snapshot()
    assert [segment.base for segment in snapshot.segments[1:]] == [segment.limit for segment in snapshot.segments[:-1]]
    assert snapshot.statistics(0) == (5_000, 5.0)


def test_batches_are_inverted_at_once_while_somebody_searches(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    batch = titles("blue " * LEAST_SEARCHED_TOKENS)
    lids = iter(range(10))

    def is_inverted() -> bool:
        index.add_batch(next(lids), "music", batch)
        return not any(isinstance(field, Tokens) for field in index.snapshot().segments[-1].fields)

    assert not is_inverted()
    assert found(index.snapshot(), "blue") == [0]
    assert is_inverted()
    assert not is_inverted()  # nobody has searched the one before
    assert found(index.snapshot(), "blue") == [0, 1, 2]
    assert is_inverted()


def test_large_batches_are_inverted_at_once(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(
        0, "music", titles(*["blue " * LEAST_SEARCHED_TOKENS] * (LEAST_INVERTED_TOKENS // LEAST_SEARCHED_TOKENS))
    )
    assert not any(isinstance(field, Tokens) for field in index.snapshot().segments[-1].fields)


def test_a_flush_leaves_few_files(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    for lid in range(3 * FAN_OUT):
        index.add_batch(lid, "music", titles("blue"))
        state = flush(index)
    assert len(state["segments"]) <= FAN_OUT
    assert index.memory_bytes() == 0


def test_merging_drops_dead_documents(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue", "blue", "green"))
    index.add_batch(3, "music", titles("blue", "red"))
    index.live = bitmap([1, 3], 5)
    flush(index)
    snapshot = index.snapshot()
    assert found(snapshot, "blue") == [1, 3]
    assert found(snapshot, "green") == found(snapshot, "red") == []
    assert snapshot.statistics(0) == (2, 1.0)


def test_documents_beyond_the_bitmap_live(tmp_path: Path) -> None:
    """They were added after it was published. In the bitmap's last word its owner sets what is beyond."""
    index = new_index(tmp_path)
    index.live = bitmap(range(64), 64)
    index.add_batch(0, "music", titles("blue"))
    index.add_batch(1, "music", titles(*["blue"] * 200))
    flush(index)
    assert found(index.snapshot(), "blue") == list(range(201))


def test_the_frequency_of_live_documents(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles(*["blue"] * 10, *["green"] * 10))
    snapshot = index.snapshot()
    term, live = snapshot.term_id("blue"), bitmap([0, 1, 15], 20)
    assert snapshot.document_frequency(0, term) == 10
    assert snapshot.live_frequency(0, term, live, dead=True) == 2
    assert snapshot.live_frequency(0, term, live, dead=False) == 10
    assert snapshot.live_frequency(0, -1 % 2**32, live, dead=True) == 0


@pytest.mark.parametrize("counts", [True, False])
def test_files_that_no_state_names_are_deleted(tmp_path: Path, counts: bool) -> None:
    """Those of the state that counts stay until another does, however many are flushed in vain."""
    index = new_index(tmp_path)
    (tmp_path / "field-0-0-9.9.bin").write_bytes(b"left by a crash")
    states = []
    for lid in range(4):
        index.add_batch(lid, "music", titles("blue"))
        states.append(flush(index))
        if counts and lid < 3:
            index.keep_last()
    named = {file for state in (states[-2] if counts else states[0], states[-1]) for file in names(state)}
    assert {path.name for path in tmp_path.iterdir()} == named
    assert found(index.snapshot(), "blue") == [0, 1, 2, 3]


def names(state: IndexState) -> set[str]:
    field_indexes = {file["name"] for segment in state["segments"] for file in segment["files"] if file is not None}
    return {*(file["name"] for file in state["words"]), *field_indexes}


def test_a_reader_keeps_files_that_are_deleted(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue"))
    flush(index)
    before = index.snapshot()
    for lid in range(1, 4 * FAN_OUT):
        index.add_batch(lid, "music", titles("blue"))
        flush(index)
    assert found(before, "blue") == [0]


def test_a_state_that_calls_segments_parts_is_restored(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue"))
    state = flush(index)
    again = new_index(tmp_path)
    again.load({"fields": state["fields"], "words": state["words"], "parts": state["segments"]})
    assert found(again.snapshot(), "blue") == [0]
    again.add_batch(1, "music", titles("blue"))
    assert "parts" not in flush(again) and found(again.snapshot(), "blue") == [0, 1]


@pytest.mark.parametrize("damage", ["missing", "short", "flipped"])
@pytest.mark.parametrize("kind", ["lexicon", "field-"])
def test_damage_is_named_by_file(tmp_path: Path, kind: str, damage: str) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue", "green"))
    state = flush(index)
    path = next(tmp_path.glob(f"{kind}*"))
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes(content[:middle] if damage == "short" else flipped)
    with pytest.raises(Corruption, match=path.name):
        TextIndex(tmp_path).load(state)


def test_a_write_during_a_flush_is_kept(tmp_path: Path) -> None:
    """The writer goes on between freezing and writing, and merges nothing that is being written."""
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue"))
    frozen = index.freeze()
    for lid in range(1, 50):
        index.add_batch(lid, "music", titles("blue"))
    state = index.flush(frozen)
    assert found(index.snapshot(), "blue") == list(range(50))
    again = TextIndex(tmp_path)
    again.load(state)
    assert found(again.snapshot(), "blue") == [0]


def test_fields_keep_their_numbers_and_profiles(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", titles("blue"))
    index.configure([IndexedField("album", "name", TextProfile(whole=True, cased=True)), *FIELDS])
    index.add_batch(1, "album", [{"name": "Kind of Blue"}])
    again = TextIndex(tmp_path)
    again.load(flush(index))
    snapshot = again.snapshot()
    assert [snapshot.number_of(field.key) for field in FIELDS] == [0, 1, 2]
    number, indexed = snapshot.fields["album", "name"]
    assert (number, indexed.profile.whole, indexed.profile.cased) == (3, True, True)
    assert [found(snapshot, word, ("album", "name")) for word in indexed.profile.terms("Kind of Blue")] == [[1]]
    assert [found(snapshot, word, ("album", "name")) for word in indexed.profile.terms("kind of blue")] == [[]]


def test_a_field_that_is_indexed_no_more_leaves_nothing(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", [{"title": "blue", "lyrics": ["so blue"]}])
    before, frozen = index.snapshot(), index.freeze()
    index.configure([field for field in FIELDS if field.key != TITLE])
    assert not index.snapshot().has(TITLE) and found(before, "blue") == [0]
    index.configure(FIELDS)
    assert index.snapshot().number_of(TITLE) == len(FIELDS), "its number is still in use"
    assert found(index.snapshot(), "blue") == [] and found(index.snapshot(), "blue", LYRICS) == [0]
    index.add_batch(1, "music", titles("blue"))
    assert found(index.snapshot(), "blue") == [1]
    state = index.flush(frozen)
    assert found(index.snapshot(), "blue") == [1] and found(before, "blue") == [0]
    again = TextIndex(tmp_path)
    again.load(state)
    assert found(again.snapshot(), "blue") == [0], "as it was when it was frozen"
    state = flush(index)
    assert state["fields"][0] is None and all(segment["files"][0] is None for segment in state["segments"])
    index.configure([*FIELDS, IndexedField("music", "note", PLAIN)])
    assert index.snapshot().number_of(("music", "note")) == 0
    assert found(index.snapshot(), "blue", ("music", "note")) == []
    index.configure(FIELDS, changed=[LYRICS])
    assert found(index.snapshot(), "blue", LYRICS) == []
    again = TextIndex(tmp_path)
    again.load(state)
    assert found(again.snapshot(), "blue") == [1] and again.snapshot().number_of(TITLE) == len(FIELDS)


@given(st.lists(st.tuples(st.sampled_from(["add", "configure", "anew", "flush", "freeze", "load"]), st.integers(0, 7))))
def test_fields_come_and_go(steps: list[tuple[str, int]]) -> None:
    """`there`: by field, the lids whose postings it must have. Three fields; the bits of a step say which."""
    with TemporaryDirectory() as directory:
        index, lid = new_index(Path(directory)), 0
        there = {field.key: list[int]() for field in FIELDS}
        saved, frozen = (flush(index), {field.key: list[int]() for field in FIELDS}, 0), None
        for step, bits in steps:
            chosen = [field for number, field in enumerate(FIELDS) if bits >> number & 1]
            if step == "add":
                index.add_batch(lid, "music", [{"title": "w", "lyrics": ["w"]}])
                for key in (TITLE, LYRICS):
                    if key in there:
                        there[key].append(lid)
                lid += 1
            elif step == "configure":
                index.configure(chosen)
                there = {field.key: there.get(field.key, []) for field in chosen}
            elif step == "anew":
                index.configure([field for field in FIELDS if field.key in there], [field.key for field in chosen])
                there |= {field.key: [] for field in chosen if field.key in there}
            elif step == "freeze" and frozen is None:
                frozen = index.freeze(), {key: lids[:] for key, lids in there.items()}, lid
            elif step == "flush":
                taken = frozen or (index.freeze(), {key: lids[:] for key, lids in there.items()}, lid)
                saved, frozen = (index.flush(taken[0]), taken[1], taken[2]), None
            elif step == "load":
                index = TextIndex(Path(directory))
                index.load(saved[0])
                frozen, there, lid = None, {key: lids[:] for key, lids in saved[1].items()}, saved[2]
            snapshot = index.snapshot()
            assert snapshot.fields.keys() == there.keys()
            assert {key: found(snapshot, "w", key) for key in there} == there


@pytest.mark.parametrize(
    ("profile", "text", "query", "matches"),
    [
        (profile_of("best", True, None), "Les Cafés de Paris", "cafe", True),
        (profile_of("none", True, None), "Les Cafés de Paris", "cafe", False),
        (profile_of("best", True, None), "blue trains", "training train", True),
        (profile_of("none", False, None), "Café", "cafe", False),
        (profile_of("none", True, None), "труд и мир", "МИР", True),
        (profile_of("best", True, "word"), "Kind of Blue", "kind of blue", True),
        (profile_of("best", True, "word"), "Kind of Blue", "blue", False),
        (profile_of("best", True, "exact"), "O'Neil & Søn", "o'neil & søn", True),
        (profile_of("best", True, None, cased=True), "Blue Σ", "Blue Σ", True),
        (profile_of("best", True, None, cased=True), "Blue Σ", "blue", False),
    ],
)
def test_text_is_found_by_its_profile(
    tmp_path: Path, profile: TextProfile, text: str, query: str, matches: bool
) -> None:
    index = new_index(tmp_path, [IndexedField(*TITLE, profile)])
    index.add_batch(0, "music", titles(text))
    assert any(found(index.snapshot(), word) for word in profile.terms(query)) == matches


PAGES = Path(__file__).parents[3] / "docs" / "internals" / "formats"


def bytes_shown(page: str) -> bytes:
    """The hexadecimal left part of the lines under "Worked example"."""
    example = (PAGES / page).read_text().split("## Worked example")[1].split("```")[1]
    return bytes.fromhex("".join(re.match(r"(?:[0-9a-f]{2} ?)*", line)[0] for line in example.splitlines()))  # type: ignore[index]


def test_the_field_index_page() -> None:
    texts = ["Blue, blue train", "Kind of Blue"]
    terms, positions, offsets, _ = _core.Lexicon().tokenize(texts, np.array([0, 2], np.uint32), 3)
    assert _core.invert(terms, positions, offsets, 3.0).tobytes() == bytes_shown("field-index.md")


def test_the_index_page(tmp_path: Path) -> None:
    index = TextIndex(tmp_path)
    index.configure([IndexedField("music", "title"), IndexedField("music", "artist", profile_of("none", True, None))])
    index.add_batch(0, "music", [{"title": "Blue Trains"}, {"title": "Kind of Blue", "artist": "Miles Davis"}])
    index.flush(index.freeze())
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(written) == {"lexicon.1.bin", "field-0-0-2.1.bin", "field-1-0-2.1.bin"}
    assert written["lexicon.1.bin"] == bytes_shown("index.md")
