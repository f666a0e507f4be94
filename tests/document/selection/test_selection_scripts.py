"""What selections say of documents: every file in `scripts/` is a topic; and the errors of those that are wrong.

A line of a script is the name of a document below, a selection, and what it says of that document: true, false or
invalid. Cases of `errors.txt`, divided by `===`, are a selection, where it may have several lines, and `---` and the
error with its place; they are written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp.document.converters import GeoPosition
from paperwasp.document.ids import DocumentId
from paperwasp.document.selection import (
    PlainSubject,
    Purpose,
    check_cluster_selection,
    check_selection,
    matcher_of,
    parse_selection,
)
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    INT,
    LONG,
    POSITION,
    RAW,
    STRING,
    DocumentType,
    array_of,
    map_of,
    struct_of,
    weighted_set_of,
)
from paperwasp.errors import LanguageError

SCRIPTS = Path(__file__).parent / "scripts"
NOW_US = 1_500_000_000_999_999
VERDICTS = {True: "true", False: "false", None: "invalid"}

TRACK = struct_of("track", {"key": INT, "value": STRING, "inner": struct_of("inner", {"key": STRING, "value": INT})})
MUSIC = DocumentType(
    "music",
    {
        "year": INT,
        "price": DOUBLE,
        "title": STRING,
        "content": STRING,
        "expires": LONG,
        "cool": BOOL,
        "best": TRACK,
        "tracks": array_of(TRACK),
        "names": map_of(INT, STRING),
        "nested": map_of(STRING, array_of(TRACK)),
        "tags": weighted_set_of(STRING),
        "bytes": weighted_set_of(BYTE),
        "place": POSITION,
        "raw": RAW,
    },
)
ALBUM = DocumentType("album", MUSIC.fields, ("music",))
TYPES = {"music": MUSIC, "album": ALBUM}


def subject(id_: str, **fields: object) -> PlainSubject:
    parsed = DocumentId.parse(id_)
    return PlainSubject(parsed, fields, TYPES[parsed.document_type])


def tracks(*keys: int) -> list[dict[str, object]]:
    return [{"key": key, "value": f"structval{key - 14}"} for key in keys]


SUBJECTS = {
    "plain": subject("id:myspace:music::anything", year=24, price=2.0, title="foo", content="bar", cool=True),
    "full": subject(
        "id:anotherspace:music::foo",
        year=13,
        price=4.1,
        title="bar",
        content="foo",
        best={"key": 14, "value": "structval", "inner": {"key": "k", "value": 3}},
        tracks=tracks(15, 16),
        names={3: "a", 5: "b", 7: "c"},
        nested={"foo": tracks(15, 16), "bar": tracks(17, 18)},
        tags={"foo": 1, "val1": 1, "val2": 1, "val3": 1, "val4": 1},
        bytes={5: 1, 75: 1, -1: 1, 0: 1},
        place=GeoPosition(-122_000_000, 37_400_000),
        raw=b"\x00\xff",
    ),
    "number": subject(
        "id:myspace:music:n=1234:footype1", year=15, price=1.0, title="some", content="some", best={}, tracks=[]
    ),
    "group": subject("id:myspace:music:g=yahoo:bar", year=14, price=2.4, title="Yet", content="为什"),
    "album": subject("id:myspace:album::inheriteddoc", year=10, price=1.4, title="inherited", content=""),
}


def cases(path: Path) -> Iterator[tuple[str, str, str]]:
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            name, _, rest = line.partition(" | ")
            text, _, verdict = rest.rpartition(" | ")
            yield name, text, verdict


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    wrong = []
    for name, text, expected in cases(path):
        selection = parse_selection(text)
        check_selection(selection, TYPES)
        for selected in (selection, parse_selection(str(selection))):
            assert selected == selection
            said = VERDICTS[matcher_of(selected)(SUBJECTS[name], NOW_US)]
            if said != expected:
                wrong.append(f"{name} | {text} | {said}, not {expected}")
    assert wrong == []


ERRORS = Path(__file__).parent / "errors.txt"
IMPORTED = {"music": {"artist_year": INT, "artist_names": array_of(STRING)}}


def error_of(text: str) -> str:
    with pytest.raises(LanguageError) as caught:
        check_selection(parse_selection(text), TYPES, IMPORTED)
    return str(caught.value)


def test_errors() -> None:
    cases = [case.split("\n---\n") for case in ERRORS.read_text().rstrip("\n").split("\n===\n")]
    assert [[text, error_of(text)] for text, _ in cases] == cases


def test_the_source_is_named() -> None:
    with pytest.raises(
        LanguageError, match=r"^condition, line 1, column 7: expected 'and', 'or' or the end, found '<'"
    ):
        parse_selection("1 < 2 < 3", "condition")


def test_code_points_that_are_none() -> None:
    with pytest.raises(LanguageError, match="line 1, column 9: illegal code point 0xD800"):
        parse_selection("music=='\ud800'")


def test_imported_fields_are_for_visiting() -> None:
    for text in ("music.artist_year > 1970", "music.artist_year == null"):
        check_selection(parse_selection(text), TYPES, IMPORTED)
        check_selection(parse_selection(text), TYPES, IMPORTED, Purpose.CLUSTER)
        with pytest.raises(LanguageError, match="'artist_year' could not be found, or is an imported field"):
            check_selection(parse_selection(text), TYPES, IMPORTED, Purpose.CONDITION)


def test_selections_of_clusters_name_their_own_type_alone() -> None:
    check_cluster_selection(parse_selection("id.user < 3 and now() > 0"))
    check_cluster_selection(parse_selection("music and music.year > 3"), "music")
    with pytest.raises(LanguageError, match=r"line 2, column 4: Selection for document type 'music' can .* 'album'\)"):
        check_cluster_selection(parse_selection("music\nor album"), "music")
    with pytest.raises(LanguageError, match=r"line 1, column 1: Document type references are not allowed .* 'music'\)"):
        check_cluster_selection(parse_selection("music.year > 3"))
