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
from paperwasp.ranking.ubjson import read_ubjson
from paperwasp.ranking.xgboost_file import read_xgboost
from paperwasp.ranking.xgboost_saved import names_in, read_saved_xgboost

_FORESTS: Final[WeakValueDictionary[tuple[object, ...], Forest]] = WeakValueDictionary()
UBJSON: Final = ".ubj"


def names_path(path: str) -> str:
    """Where the names of the features of a saved model may be."""
    return path.removesuffix(UBJSON) + "-features.txt"


def read_forest(kind: str, path: str, content: bytes, names: bytes = b"") -> Forest:
    """The forest of a model. `kind`: xgboost or lightgbm. `names`: the content of the file at `names_path`."""
    is_saved = kind == "xgboost" and path.endswith(UBJSON)
    key = (kind, is_saved, sha256(content).digest(), names if is_saved else b"")
    found = _FORESTS.get(key)
    if found is None:
        found = _FORESTS[key] = _read(kind, path, content, names if is_saved else None)
    return found


def _read(kind: str, path: str, content: bytes, names: bytes | None) -> Forest:
    if len(content) > limits.FOREST_FILE_BYTES:
        raise LanguageError(f"{path} has {len(content)} bytes; trees have at most {limits.FOREST_FILE_BYTES}")
    try:
        if names is not None:
            return read_saved_xgboost(read_ubjson(content), _names(path, names))
        dump = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise LanguageError(f"{Position(path, error.lineno, error.colno)}: {error.msg}") from None
    except ValueError as error:
        raise LanguageError(f"{path} is no {kind} model: {error}") from None
    try:
        return read_xgboost(dump) if kind == "xgboost" else read_lightgbm(dump, text_hash)
    except ValueError as error:
        raise LanguageError(f"{path} is no {kind} model: {error}") from None


def _names(path: str, content: bytes) -> tuple[str, ...]:
    try:
        return names_in(content.decode())
    except UnicodeDecodeError:
        raise LanguageError(f"{names_path(path)} is not UTF-8") from None
