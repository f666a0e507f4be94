"""The examples of docs/reference/document-selection.md select what the page says, and its limits are the code's."""

from __future__ import annotations

import json
import re
from pathlib import Path

from paperwasp import limits
from paperwasp.document.ids import DocumentId
from paperwasp.document.selection import PlainSubject, check_selection, matcher_of, parse_selection
from paperwasp.document.types import (
    BOOL,
    DOUBLE,
    INT,
    LONG,
    STRING,
    DocumentType,
    array_of,
    map_of,
    struct_of,
    weighted_set_of,
)
from tests.document.selection.test_selection_scripts import NOW_US, VERDICTS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "document-selection.md").read_text()
LABEL = struct_of("label", {"name": STRING, "country": STRING})
TRACK = struct_of("track", {"title": STRING, "seconds": INT})
MUSIC = DocumentType(
    "music",
    {
        "title": STRING,
        "year": INT,
        "price": DOUBLE,
        "cool": BOOL,
        "expires": LONG,
        "label": LABEL,
        "tracks": array_of(TRACK),
        "players": map_of(STRING, STRING),
        "tags": weighted_set_of(STRING),
    },
)
TYPES = {"music": MUSIC, "album": DocumentType("album", {"year": INT})}


def test_examples() -> None:
    found = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    document = json.loads(found[1])
    first = re.search(r"```\n(.*?)\n```", PAGE, re.DOTALL)
    assert first is not None
    subject = PlainSubject(DocumentId.parse(document["id"]), document["fields"], MUSIC)
    examples = re.findall(r"^\| `(.*)` \| (true|false|invalid) \|$", PAGE, re.MULTILINE)
    assert len(examples) > 30
    examples.insert(0, (first[1], "true"))
    said = []
    for text, _ in examples:
        selection = parse_selection(text)
        check_selection(selection, TYPES)
        said.append((text, VERDICTS[matcher_of(selection)(subject, NOW_US)]))
    assert said == examples


def test_limits() -> None:
    table = PAGE.partition("## Limits")[2].partition("##")[0]
    assert re.findall(r"^\| ([0-9]+) ?(\w*)", table, re.MULTILINE) == [
        (str(limits.SELECTION_CHARACTERS), "characters"),
        (str(limits.SELECTION_DEPTH), ""),
        (str(limits.SELECTION_PATTERNS), ""),
        (str(limits.SELECTION_PATTERN_BYTES >> 20), "MiB"),
        (str(limits.SELECTION_TEXT_CHARACTERS), "characters"),
        (str(limits.SELECTION_BINDINGS), ""),
    ]
