"""The words of an index on disk: each checkpoint writes what came, files stay few, and what was there is loaded."""

from __future__ import annotations

import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.errors import Corruption
from paperwasp.storage.index import IndexedField, TextIndex
from paperwasp.storage.index.files import WordsEnd, describe_file, read_words, restore_words, words_since, write_words
from paperwasp.storage.index.text_index import IndexState
from paperwasp.text.linguistics import STEMMERS

KROVETZ, GERMAN = (STEMMERS.index(name) for name in ("krovetz", "german"))
WORDS = [f"{stem}{end}" for stem in ("train", "wing", "note", "hous", "bug", "stone") for end in ("", "s", "ing", "ed")]


def everything(lexicon: _core.Lexicon) -> tuple[list[str], dict[int, list[int]]]:
    """All words, and for each stemmer that stemmed any the term of each."""
    stems = {number: lexicon.stems_from(number, 0).tolist() for number in lexicon.stemmers()}
    none = [_core.NO_TERM] * len(lexicon)
    return [lexicon.text(id_) for id_ in range(len(lexicon))], {n: of for n, of in stems.items() if of != none}


def add(lexicon: _core.Lexicon, words: list[str], stemmer: int | None = None) -> None:
    ids, *_ = lexicon.tokenize([" ".join(words)], np.zeros(1, np.uint32), 1)
    if stemmer is not None:
        unknown = lexicon.unknown(stemmer, ids)
        lexicon.learn(stemmer, unknown, [lexicon.text(id_)[: 5 - stemmer % 2] for id_ in unknown])


def restored(directory: Path, files: list[dict[str, object]]) -> _core.Lexicon:
    lexicon = _core.Lexicon()
    restore_words(lexicon, [directory / str(file["name"]) for file in files])
    return lexicon


Step = tuple[list[str], int | None, str]
steps = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=6),
        st.sampled_from([None, KROVETZ, GERMAN]),
        st.sampled_from(["", "save", "fail", "load"]),
    ),
    max_size=20,
)


@given(steps)
def test_what_is_saved_in_runs_is_the_lexicon(taken: list[Step]) -> None:
    """Words are added and stemmed by one or the other, saved, saved in vain, or loaded, in any order."""
    with TemporaryDirectory() as folder:
        directory, lexicon = Path(folder), _core.Lexicon()
        files: list[dict[str, object]] = []
        end = WordsEnd()
        for words, stemmer, then in taken:
            add(lexicon, words, stemmer)
            run, run_end = words_since(lexicon, end)
            assert (run.first, run.limit) == (end.words, len(lexicon))
            if then == "fail":
                write_words(directory, files, run)
            elif then:
                files, end = write_words(directory, files, run), run_end
                assert everything(restored(directory, files)) == everything(lexicon)
            if then == "load":
                lexicon = _core.Lexicon()
                end = restore_words(lexicon, [directory / str(file["name"]) for file in files])


def flush(index: TextIndex) -> IndexState:
    return index.flush(index.freeze())


def word_files(state: IndexState) -> list[str]:
    return [file["name"] for file in state["words"]]


def test_a_checkpoint_writes_the_words_that_came(tmp_path: Path) -> None:
    index = TextIndex(tmp_path)
    index.configure([IndexedField("music", "title")])
    index.add_batch(0, "music", [{"title": " ".join(f"w{number}" for number in range(1000))}])
    (first,) = word_files(flush(index))
    index.add_batch(1, "music", [{"title": "w7 w8"}])
    assert word_files(flush(index)) == [first]
    index.add_batch(2, "music", [{"title": "another word w9"}])
    frozen = index.freeze()
    assert (frozen.words.first, frozen.words.words) == (1000, b"anotherword")
    state = index.flush(frozen)
    assert word_files(state)[0] == first and len(word_files(state)) == 2
    assert state["words"][1]["size_bytes"] < 100
    again = TextIndex(tmp_path)
    again.load(state)
    assert again.snapshot().words == index.snapshot().words
    again.add_batch(3, "music", [{"title": "more"}])
    assert again.freeze().words.words == b"more"


def test_files_of_words_stay_few(tmp_path: Path) -> None:
    lexicon, files, end, written = _core.Lexicon(), [], WordsEnd(), 0  # type: ignore[var-annotated]
    for number in range(300):
        add(lexicon, [f"w{number}x{place}" for place in range(10)], KROVETZ)
        run, end = words_since(lexicon, end)
        before, files = files, write_words(tmp_path, files, run)
        written += sum(file["size_bytes"] for file in files if file not in before)
        assert len(files) <= 9
    total = sum(file["size_bytes"] for file in files)
    assert written < 9 * total
    assert everything(restored(tmp_path, files)) == everything(lexicon)


def test_one_file_with_all_words_is_read(tmp_path: Path) -> None:
    """As they were written up to data version 3."""
    stems = np.array([0, 0, _core.NO_TERM], np.uint32)
    content = struct.pack("<8sIIII", b"pwlex\x00\x00\x02", 3, 1, 7, 13)
    content += np.array([5, 6, 2], np.uint32).tobytes() + stems.tobytes() + b"krovetztraintrainsof"
    path = tmp_path / "lexicon.1.bin"
    path.write_bytes(content)
    index = TextIndex(tmp_path)
    index.load({"fields": [], "lexicon": describe_file(path), "segments": []})
    assert index.snapshot().words == ("train", "trains", "of")
    lexicon = restored(tmp_path, [{"name": path.name}])
    assert everything(lexicon) == (["train", "trains", "of"], {KROVETZ: stems.tolist()})
    index.configure([IndexedField("music", "title")])
    index.add_batch(0, "music", [{"title": "of"}])  # its term is learned late
    state = flush(index)
    assert "lexicon" not in state
    stems[2] = 2
    assert everything(restored(tmp_path, state["words"])) == (["train", "trains", "of"], {KROVETZ: stems.tolist()})


def test_files_that_do_not_follow_each_other_are_refused(tmp_path: Path) -> None:
    lexicon, end = _core.Lexicon(), WordsEnd()
    add(lexicon, [f"w{number}" for number in range(100)])
    run, end = words_since(lexicon, end)
    files = write_words(tmp_path, [], run)
    add(lexicon, ["more"])
    files = write_words(tmp_path, files, words_since(lexicon, end)[0])
    assert len(files) == 2
    with pytest.raises(Corruption, match=r"lexicon.2.bin: begins with word 100; the files before it have 0"):
        restored(tmp_path, files[1:])
    assert read_words(tmp_path / "lexicon.2.bin").words == b"more"


def test_a_damaged_file_is_not_fused(tmp_path: Path) -> None:
    lexicon, end = _core.Lexicon(), WordsEnd()
    add(lexicon, ["a", "b"])
    run, end = words_since(lexicon, end)
    files = write_words(tmp_path, [], run)
    path = tmp_path / files[0]["name"]
    path.write_bytes(path.read_bytes()[:-1] + b"c")
    add(lexicon, ["d", "e"])
    with pytest.raises(Corruption, match=r"lexicon.1.bin: damaged"):
        write_words(tmp_path, files, words_since(lexicon, end)[0])


def test_late_terms_from_a_place_that_is_forgotten_are_refused() -> None:
    lexicon = _core.Lexicon()
    with pytest.raises(ValueError, match="no such place"):
        lexicon.late_stems(1)
