"""Every script of tests/text/linguistics/scripts: what is indexed is what it says, and what a query asks for.

Lines `[setting=value …]` hold for those that follow, until the next: settings of `profile_of`, and the language of the
document; `cased` and `normalizing` alone are true. Other lines are `text => terms`: positions between ` · `, the terms
of one between `/`. `#` begins a remark. The lines before the first setting name the script's authority.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paperwasp.core import _core
from paperwasp.storage.index.tokens import tokenize
from paperwasp.text.linguistics import index_terms, profile_of, query_terms

SCRIPTS = Path(__file__).parent / "scripts"
DEFAULTS: dict[str, Any] = {"stemming": "best", "normalizing": True, "match": None}


def unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)


def setting(said: str) -> tuple[str, Any]:
    name, _, value = said.partition("=")
    if value in ("", "false"):
        return name, value == ""
    return name, int(value) if value.isdigit() else value


def cases(path: Path) -> Iterator[Any]:
    settings: dict[str, Any] | None = None
    for line in path.read_text().splitlines():
        if line.startswith("[") and line.endswith("]"):
            settings = dict(map(setting, line[1:-1].split()))
        elif settings is not None and line and not line.startswith("#"):
            text, _, terms = line.partition(" => ")
            wanted = [tuple(place.split("/")) for place in terms.split(" · ")]
            yield pytest.param(settings, unescaped(text), wanted, id=f"{path.stem}: {line[:40]}")


@pytest.mark.parametrize(
    ("settings", "text", "wanted"), [c for path in sorted(SCRIPTS.glob("*.txt")) for c in cases(path)]
)
def test_token_script(settings: dict[str, Any], text: str, wanted: list[tuple[str, ...]]) -> None:
    said = {**DEFAULTS, **settings}
    language = said.pop("language", "")
    profile = profile_of(**said)
    lexicon = _core.Lexicon()
    terms, positions, offsets, ends = tokenize(lexicon, profile, [text], [0], 1, [language] if language else None)
    indexed: dict[int, tuple[str, ...]] = {}
    for term, position in zip(terms.tolist(), positions.tolist(), strict=True):
        indexed[position] = (*indexed.get(position, ()), lexicon.text(term))
    assert list(indexed.values()) == wanted
    assert list(indexed) == list(range(len(wanted))) and ends.tolist() == [len(wanted)]
    assert offsets.tolist() == [0, len(terms)]
    assert index_terms(profile, text, language) == wanted
    if language and "max_occurrences" not in settings:
        asked = [token.term for token in query_terms(profile, text, language, in_phrase=True)]
        assert asked == [place[0] for place in wanted]
