"""The files of xgboost and lightgbm models: parsed once for all that rank with them, and released with these.

Errors: LanguageError that names the file.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final
from weakref import WeakValueDictionary

import orjson

from paperwasp import limits
from paperwasp.errors import LanguageError, Position
from paperwasp.ranking.forest import Forest
from paperwasp.ranking.lightgbm_file import read_lightgbm
from paperwasp.ranking.text_hash import text_hash
from paperwasp.ranking.xgboost_file import read_xgboost

_FORESTS: Final[WeakValueDictionary[tuple[str, bytes], Forest]] = WeakValueDictionary()


def read_forest(kind: str, path: str, content: bytes) -> Forest:
    """The forest of a model. `kind`: xgboost or lightgbm."""
    key = (kind, sha256(content).digest())
    found = _FORESTS.get(key)
    if found is None:
        found = _FORESTS[key] = _read(kind, path, content)
    return found


def _read(kind: str, path: str, content: bytes) -> Forest:
    if len(content) > limits.FOREST_FILE_BYTES:
        raise LanguageError(f"{path} has {len(content)} bytes; trees have at most {limits.FOREST_FILE_BYTES}")
    try:
        dump = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise LanguageError(f"{Position(path, error.lineno, error.colno)}: {error.msg}") from None
    try:
        return read_xgboost(dump) if kind == "xgboost" else read_lightgbm(dump, text_hash)
    except ValueError as error:
        raise LanguageError(f"{path} is no {kind} model: {error}") from None
