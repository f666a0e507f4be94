"""The files of xgboost and lightgbm models: parsed once for all that rank with them, and released with these.

Errors: LanguageError that names the file.
"""

from __future__ import annotations

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
from paperwasp.schema.files import PackageFile

_FORESTS: Final[WeakValueDictionary[tuple[object, ...], Forest]] = WeakValueDictionary()
UBJSON: Final = ".ubj"


def names_path(path: str) -> str:
    """Where the names of the features of a saved model may be."""
    return path.removesuffix(UBJSON) + "-features.txt"


def forest_in(kind: str, file: PackageFile, names: bytes = b"") -> Forest:
    """The forest of a model. `kind`: xgboost or lightgbm. `names`: the content of the file at `names_path`.

    The file is read where nobody has its forest.
    """
    is_saved = kind == "xgboost" and file.path.endswith(UBJSON)
    key = (kind, is_saved, file.digest, names if is_saved else b"")
    found = _FORESTS.get(key)
    if found is None:
        found = _FORESTS[key] = _read(kind, file, names if is_saved else None)
    return found


def _read(kind: str, file: PackageFile, names: bytes | None) -> Forest:
    path = file.path
    if file.size_bytes > limits.FOREST_FILE_BYTES:
        raise LanguageError(f"{path} has {file.size_bytes} bytes; trees have at most {limits.FOREST_FILE_BYTES}")
    try:
        if names is not None:
            return read_saved_xgboost(read_ubjson(file.read()), _names(path, names))
        return read_xgboost(file.read()) if kind == "xgboost" else read_lightgbm(file.read(), text_hash)
    except orjson.JSONDecodeError as error:
        raise LanguageError(f"{Position(path, error.lineno, error.colno)}: {error.msg}") from None
    except ValueError as error:
        raise LanguageError(f"{path} is no {kind} model: {error}") from None


def _names(path: str, content: bytes) -> tuple[str, ...]:
    try:
        return names_in(content.decode())
    except UnicodeDecodeError:
        raise LanguageError(f"{names_path(path)} is not UTF-8") from None
