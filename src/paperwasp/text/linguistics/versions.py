"""The libraries that decide the terms of a text, or whether a logged condition holds: their results are on disk.

The log has the fields that scripts made of documents, not their terms: replaying it makes these again, as feeding does.
So terms of two versions may stand in one index; a checkpoint says which version made its own. Collation, by ICU, is not
among them: no order is on disk.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Final

_PACKAGES: Final = ("PyStemmer", "regex", "google-re2")
_BUNDLED: Final = {"krovetzstemmer": "0.8"}
"""Libraries that the wheel of paperwasp contains, in the version that tools/build_backend.py asks for."""


@cache
def versions() -> Mapping[str, str]:
    """Library → version, as they are now."""
    return {**{name: version(name) for name in _PACKAGES}, **_BUNDLED, "Unicode": unicodedata.unidata_version}


def describe_changes(known: Mapping[str, str]) -> list[str]:
    """Describes libraries with another version than `known`: `PyStemmer 3.0.1, before 2.2.0`. Ignores unknown ones."""
    return [f"{name} {now}, before {known[name]}" for name, now in versions().items() if known.get(name, now) != now]
