"""Which libraries decide what a text is indexed as, or whether a logged condition holds: what they make is on disk.

The log has what scripts made of documents, not their terms: replaying it makes these anew, as do documents that are fed
later. So terms of two versions may stand in one index; a checkpoint says which version made its own. Collation, by ICU,
is none of it: no order is on disk.
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


def changed(known: Mapping[str, str]) -> list[str]:
    """What is not as it was, for reading: `PyStemmer 3.0.1, before 2.2.0`. Nothing is said of libraries not `known`."""
    return [f"{name} {now}, before {known[name]}" for name, now in versions().items() if known.get(name, now) != now]
