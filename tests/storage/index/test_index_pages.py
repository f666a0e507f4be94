"""The worked examples of docs/internals/formats/field-index.md and index.md are what the code writes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from paperwasp.core import _core
from paperwasp.storage.index import IndexedField, TextIndex
from paperwasp.text.linguistics import profile_of

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
