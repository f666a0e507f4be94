"""The files of xgboost and lightgbm models: parsed once for all that rank with them, and released with these.

Errors: LanguageError that names the file.

LightGBM models are in the form of `dump_model()`, as Vespa reads it: a split by number goes left where its feature is
less than the threshold (LightGBM itself goes left where it is equal, too), a split by categories where the feature is
one of these texts. A missing feature goes left where `default_left` says so. The objectives of probabilities and of
logarithms put their function around the sum.

Vespa: https://docs.vespa.ai/en/ranking/lightgbm.html
Differs: categories that are no texts are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson

from paperwasp import limits
from paperwasp.errors import LanguageError, Position
from paperwasp.ranking.forest import Forest, ForestBuilder, Link, Split, number_of
from paperwasp.ranking.text_hash import text_hash
from paperwasp.ranking.xgboost_file import names_in, read_saved_xgboost, read_ubjson, read_xgboost
from paperwasp.schema.files import PackageFile
from paperwasp.text.large_json import Take, load_json_without

_FORESTS: Final[WeakValueDictionary[tuple[object, ...], Forest]] = WeakValueDictionary()
UBJSON: Final = ".ubj"


def names_path(path: str) -> str:
    """Return the path of the file that may name the features of a saved model."""
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


# LightGBM

_LINKS: Final[Mapping[str, Link]] = {
    "cross_entropy": "sigmoid",
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
}
_CATEGORICAL: Final = "=="
_TREES: Final = "tree_info"

Hash = Callable[[str], float]
"""The number that stands for a text in expressions."""


def read_lightgbm(content: bytes, text_hash: Hash) -> Forest:
    """The forest of a dump, of which a few trees at a time are objects. What trees mean stands around them, so that the
    dump is read twice.

    Errors: ValueError that says what is wrong; orjson.JSONDecodeError, which is one, with the place.
    """
    asked = set[Any]()

    def look(trees: list[Any]) -> None:
        asked.update(_asked_by_category(map(_structure, trees)))

    def begin_to_look() -> Take:
        asked.clear()
        return look

    dump = load_json_without(content, _TREES, begin_to_look)
    if not isinstance(dump, dict) or not isinstance(dump.get(_TREES), list):
        raise ValueError("it holds no trees: an object with tree_info is expected")
    names = dump.get("feature_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("it has no feature_names")
    read = partial(_node_of, names, _categories(dump, names, asked), text_hash)
    builder = ForestBuilder()

    def take(trees: list[Any]) -> None:
        for tree in trees:
            builder.tree(_structure(tree), read)

    def begin() -> Take:
        nonlocal builder
        builder = ForestBuilder()
        return take

    load_json_without(content, _TREES, begin)
    return builder.forest(link=_link(dump.get("objective", "regression")))


def _structure(tree: Any) -> Any:
    return tree.get("tree_structure") if isinstance(tree, dict) else None


def _link(objective: Any) -> Link:
    text = objective if isinstance(objective, str) else ""
    return "sigmoid" if text.startswith("binary") else _LINKS.get(text, "")


def _node_of(
    names: Sequence[str], categories: Mapping[int, Sequence[Any]], text_hash: Hash, node: Any
) -> Split | float:
    if not isinstance(node, dict):
        raise ValueError("a node is no object")
    left, right = node.get("left_child"), node.get("right_child")
    if left is None and right is None:
        return number_of(node, "leaf_value", 0.0)
    place = _place(node.get("split_feature"), names)
    missing_left = node.get("default_left") is True
    if node.get("decision_type") == _CATEGORICAL:
        texts = [_category(each, place, names, categories) for each in str(node.get("threshold")).split("||")]
        return Split(names[place], left, right, missing_left, members=tuple(map(text_hash, texts)))
    return Split(names[place], left, right, missing_left, _threshold(node))


def _place(place: Any, names: Sequence[str]) -> int:
    """The number of a feature that a split asks for. Errors: ValueError where there is none."""
    if type(place) is not int or not 0 <= place < len(names):
        raise ValueError(f"a split asks for feature {str(place)[:40]!r}, and there are {len(names)}")
    return place


def _threshold(node: Mapping[str, Any]) -> float:
    text = node.get("threshold")
    try:
        return number_of({"threshold": float(text)} if isinstance(text, str) else node, "threshold")
    except ValueError:
        raise ValueError(f"a split has no number as threshold, but {str(text)[:40]!r}") from None


def _category(text: str, place: int, names: Sequence[str], categories: Mapping[int, Sequence[Any]]) -> str:
    """The text of a category, which splits have by its number."""
    if place not in categories:
        return text
    values = categories[place]
    if not text.isdecimal() or len(text) > 9 or int(text) >= len(values):
        raise ValueError(f"a split asks for category {text[:40]!r} of {names[place]!r}, which has {len(values)}")
    value = values[int(text)]
    if not isinstance(value, str):
        raise ValueError(f"category {text} of {names[place]!r} is no text: categories are the texts of string fields")
    return value


def _categories(dump: Mapping[str, Any], names: Sequence[str], asked: Iterable[Any]) -> Mapping[int, Sequence[Any]]:
    """Number of a feature → the categories that it has. They stand in the order of the features that have any.

    `asked`: what splits by categories say that they ask for."""
    known = dump.get("pandas_categorical") or []
    if not isinstance(known, list) or not all(isinstance(values, list) for values in known):
        raise ValueError("pandas_categorical is no list of lists")
    infos_by_name = dump.get("feature_infos")
    if isinstance(infos_by_name, dict):
        infos = [infos_by_name.get(name) for name in names]
        categorical = [n for n, info in enumerate(infos) if isinstance(info, dict) and info.get("values")]
    else:
        categorical = sorted(_place(asked_for, names) for asked_for in asked)
    return dict(zip(categorical, known, strict=False))


def _asked_by_category(trees: Iterable[Any]) -> Iterator[Any]:
    """Return the features that the splits by categories name, be they numbers of features or not."""
    pending = list(trees)
    while pending:
        node = pending.pop()
        if isinstance(node, dict) and "split_feature" in node:
            if node.get("decision_type") == _CATEGORICAL:
                place = node.get("split_feature")
                yield place if type(place) is int else str(place)
            pending += [node.get("left_child"), node.get("right_child")]
