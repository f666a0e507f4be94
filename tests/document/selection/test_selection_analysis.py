"""What is known of a selection without a document, and what a matcher asks of one."""

from __future__ import annotations

import pytest

from paperwasp import limits
from paperwasp.document.ids import DocumentId
from paperwasp.document.selection import (
    conjunction,
    fields_of,
    is_everything,
    location_of,
    matcher_of,
    negate,
    parse_selection,
    types_of,
)
from paperwasp.document.types import DataType
from paperwasp.errors import LanguageError
from tests.document.selection.test_selection_scripts import NOW_US, SUBJECTS


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("id.user == 1959", "a7070000"),
        ("0x100000001 = id.user and music", "01000000"),
        ("music.year > 3 and (id.user == -1 and true)", "ffffffff"),
        ("id.group == 'yahoo'", "241fe8af"),  # the MD5 of the group begins so
        ("id.group = 'yahoo'", "241fe8af"),
        ("id.group = 'yaho?'", None),
        ("id == 'id:myspace:music:n=3:x'", "03000000"),
        ("id == 'no id'", None),
        ("id.user == 1 or id.user == 1", "01000000"),
        ("id.user == 1 or id.user == 2", None),
        ("id.user == 1 or music", None),
        ("not id.user == 1", None),
        ("id.user != 1", None),
        ("id.user >= 1", None),
        ("id.user == true", None),
        (f"id == 'id:ns:music:n={'9' * 5000}:1'", None),
    ],
)
def test_location(text: str, location: str | None) -> None:
    found = location_of(parse_selection(text))
    assert (found.hex() if found is not None else None) == location


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("music", {"music"}),
        ("not music", None),
        ("music or album", {"music", "album"}),
        ("music or true", None),
        ("music.year > 3", {"music"}),
        ("not music.year > 3", {"music"}),
        ("id.user == 3", None),
        ("id.type == 'music' and id.user == 3", {"music"}),
        ("id.type = 'm*'", None),
        ("not (not music or album)", {"music"}),
        ("false", set()),
    ],
)
def test_types(text: str, types: set[str] | None) -> None:
    assert types_of(parse_selection(text)) == types


def test_everything() -> None:
    everything = ["", "true", "true and true", "music or true", " \n"]
    assert [is_everything(parse_selection(text)) for text in everything] == [True] * len(everything)
    others = ["false", "not false", "music", "true and music", "1 == 1"]
    assert [is_everything(parse_selection(text)) for text in others] == [False] * len(others)


def test_fields() -> None:
    assert fields_of(parse_selection("id.user == 3 and now() > 4 and music")) == frozenset()
    found = fields_of(parse_selection("music.year > album.tracks[0].key or not music.title.lowercase() = 'a'"))
    assert found == {("music", "year"), ("album", "tracks"), ("music", "title")}


def test_a_conjunction_reads_as_all_of_its_parts() -> None:
    parts = ["music.year > 3 or album", "", "music", "id.namespace == 'ns' and id.user == 3"]
    whole = conjunction(*map(parse_selection, parts))
    assert str(whole) == '(music.year > 3 or album) and music and id.namespace == "ns" and id.user == 3'
    assert str(conjunction()) == "true"
    assert str(negate(whole)) == f"not ({whole})"


def test_what_is_made_of_selections_has_a_text_that_can_be_read() -> None:
    deepest = parse_selection("not " * limits.SELECTION_DEPTH + "music")
    assert parse_selection(str(deepest)) == deepest
    with pytest.raises(LanguageError, match="nested deeper than"):
        negate(deepest)
    with pytest.raises(LanguageError, match="nested deeper than"):
        conjunction(deepest, parse_selection("music"))


class Curious:
    """A subject that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.id = DocumentId.parse("id:myspace:music:n=3:x")

    def is_a(self, type_name: str) -> bool:
        return type_name == "music"

    def field(self, name: str) -> object:
        self.asked.append(name)
        return SUBJECTS["full"].field(name)

    def data_type(self, name: str) -> DataType | None:
        self.asked.append(f"type of {name}")
        return SUBJECTS["full"].data_type(name)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("id.user == 3 and music", []),
        ("album.year == 3", []),
        ("album and music.year > 3", []),
        ("music or music.year > 3", []),
        ("music.year > 3 and music.title == 'bar'", ["year", "title"]),
        ("music.year > 3 or music.title == 'bar'", ["year"]),
        ("music.tracks.key == 15", ["tracks", "type of tracks"]),
        ("music.place.x < 0", ["place"]),
    ],
)
def test_a_document_is_asked_for_what_decides(text: str, asked: list[str]) -> None:
    subject = Curious()
    matcher_of(parse_selection(text))(subject, NOW_US)
    assert subject.asked == asked
