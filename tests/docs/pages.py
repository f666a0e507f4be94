"""Pages of the documentation, read as a reader's browser does: their headings and links."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`([^`\n]*)`")
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)


def links(page: Path) -> list[str]:
    """Return the targets of a page's links; what looks like one in code is none."""
    return _LINK.findall(_CODE.sub("", _FENCED.sub("", page.read_text())))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return what links to the headings of a page end with; a heading that was there before has a number behind it."""
    text = _CODE.sub(r"\1", _FENCED.sub("", page.read_text()))
    names = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text)]
    seen: Counter[str] = Counter()
    found = set()
    for name in names:
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset(found)
