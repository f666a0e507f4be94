"""Errors of selections: their place, and what was expected there. `errors.txt` is written by hand.

A case is a selection, where it may have several lines, and `---` and the error; cases are divided by `===`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from paperwasp.document.selection import Purpose, check_cluster_selection, check_selection, parse_selection
from paperwasp.document.types import INT, STRING, array_of
from paperwasp.errors import LanguageError
from tests.document.selection.test_selection_scripts import TYPES

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
