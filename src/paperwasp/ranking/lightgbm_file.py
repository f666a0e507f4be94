"""LightGBM models in the form of `dump_model()`.

As Vespa reads it: a split by number goes left where its feature is less than the threshold (LightGBM itself goes left
where it is equal, too), a split by categories where the feature is one of these texts. A missing feature goes left
where `default_left` says so. The objectives of probabilities and of logarithms put their function around the sum.
Differs: categories that are no texts are refused.

Vespa: https://docs.vespa.ai/en/ranking/lightgbm.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from paperwasp.ranking.forest import Forest, ForestBuilder, Link, Split, number_of

_LINKS: Final[Mapping[str, Link]] = {
    "cross_entropy": "sigmoid",
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
}
_CATEGORICAL: Final = "=="

Hash = Callable[[str], float]
"""The number that stands for a text in expressions."""


def read_lightgbm(dump: Any, text_hash: Hash) -> Forest:
    """The forest of a dump that was parsed. Errors: ValueError that says what is wrong."""
    if not isinstance(dump, dict) or not isinstance(dump.get("tree_info"), list):
        raise ValueError("it holds no trees: an object with tree_info is expected")
    names = dump.get("feature_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("it has no feature_names")
    trees = [tree.get("tree_structure") if isinstance(tree, dict) else None for tree in dump["tree_info"]]
    categories = _categories(dump, names, trees)
    builder = ForestBuilder()
    read = partial(_read, names, categories, text_hash)
    for tree in trees:
        builder.tree(tree, read)
    return builder.forest(link=_link(dump.get("objective", "regression")))


def _link(objective: Any) -> Link:
    text = objective if isinstance(objective, str) else ""
    return "sigmoid" if text.startswith("binary") else _LINKS.get(text, "")


def _read(names: Sequence[str], categories: Mapping[int, Sequence[Any]], text_hash: Hash, node: Any) -> Split | float:
    if not isinstance(node, dict):
        raise ValueError("a node is no object")
    left, right = node.get("left_child"), node.get("right_child")
    if left is None and right is None:
        return number_of(node, "leaf_value", 0.0)
    place = _feature(node, names)
    missing_left = node.get("default_left") is True
    if node.get("decision_type") == _CATEGORICAL:
        texts = [_category(each, place, names, categories) for each in str(node.get("threshold")).split("||")]
        return Split(names[place], left, right, missing_left, members=tuple(map(text_hash, texts)))
    return Split(names[place], left, right, missing_left, _threshold(node))


def _feature(node: Mapping[str, Any], names: Sequence[str]) -> int:
    place = node.get("split_feature")
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


def _categories(dump: Mapping[str, Any], names: Sequence[str], trees: Sequence[Any]) -> Mapping[int, Sequence[Any]]:
    """Number of a feature → the categories that it has. They stand in the order of the features that have any."""
    known = dump.get("pandas_categorical") or []
    if not isinstance(known, list) or not all(isinstance(values, list) for values in known):
        raise ValueError("pandas_categorical is no list of lists")
    infos_by_name = dump.get("feature_infos")
    if isinstance(infos_by_name, dict):
        infos = [infos_by_name.get(name) for name in names]
        categorical = [n for n, info in enumerate(infos) if isinstance(info, dict) and info.get("values")]
    else:
        categorical = sorted(set(_asked_by_category(trees, names)))
    return dict(zip(categorical, known, strict=False))


def _asked_by_category(trees: Sequence[Any], names: Sequence[str]) -> Iterator[int]:
    pending = list(trees)
    while pending:
        node = pending.pop()
        if isinstance(node, dict) and "split_feature" in node:
            if node.get("decision_type") == _CATEGORICAL:
                yield _feature(node, names)
            pending += [node.get("left_child"), node.get("right_child")]
