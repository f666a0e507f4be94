"""The version of a data directory as a whole: the file `version`, which each start looks at before anything else.

Each format has a version of its own, besides (docs/internals/formats). This one rises where data that this version
writes would be misread by an earlier one, so that the earlier one refuses it with nothing changed.
`docs/reference/operations.md` says which versions read which.

    1   no file; applications have folders, layouts are of version 3 (see `content/layouts/layout.py`)
    2   the file `version`
    3   documents are stored with their empty values
    4   the words of an index are several files
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

from paperwasp.base.version import VERSION
from paperwasp.coordination.disk import REAL_DISK
from paperwasp.errors import Corruption, OtherVersion

DATA_VERSION: Final = 4
_FILE: Final = "version"


def check_version(directory: Path) -> None:
    """Returns where this version can read what a data directory holds, or there is nothing. Changes nothing.

    Errors: OtherVersion, naming the one that wrote it; Corruption.
    """
    found = _read(directory)
    if found is not None and found["data"] > DATA_VERSION:
        raise OtherVersion(
            f"The data directory '{directory}' was written by paperwasp {found['paperwasp']}, in data version"
            f" {found['data']}; this is paperwasp {VERSION}, which reads versions up to {DATA_VERSION}"
        )
    had_one_application = (directory / "config" / "keys" / "active").is_file() or any(directory.glob("content/*/log"))
    if found is None and had_one_application:
        raise OtherVersion(
            f"The data directory '{directory}' was written by a paperwasp from before data version 1 (from when"
            f" a service had one application); this is paperwasp {VERSION}, which reads versions 1 to"
            f" {DATA_VERSION}"
        )


def write_version(directory: Path) -> None:
    """Makes it a data directory of this version. The caller has its lock, and has checked it."""
    found = _read(directory)
    if found is None or found["data"] != DATA_VERSION:
        content = orjson.dumps({"data": DATA_VERSION, "paperwasp": VERSION})
        REAL_DISK.write_whole(directory / _FILE, content + b"\n")


def _read(directory: Path) -> dict[str, Any] | None:
    path = directory / _FILE
    try:
        found = orjson.loads(path.read_bytes())
        return {"data": int(found["data"]), "paperwasp": str(found["paperwasp"])}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise Corruption(f"{path}: offset 0: this does not say of which version the data is") from None
