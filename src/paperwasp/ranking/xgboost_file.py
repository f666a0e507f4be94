"""XGBoost models, as `dump_model` writes them in JSON, and `save_model` in Universal Binary JSON.

`dump_model(dump_format="json")` is a list of trees. It has neither base score nor objective, so the model is the sum of
its trees. As Vespa reads it: a split goes to `yes` where its feature is less than `split_condition`, which is rounded
to a float as XGBoost has it; a missing feature goes to `yes` if `missing` says so, else to `no`. A feature that is
named by a number n only is `xgboost_input_n`.

`save_model("name.ubj")` has trees as columns, with base score, objective and names. As Vespa reads it: the value is the
sum of the trees and the base score, which a logistic objective has as a probability; no function is put around the sum.
Feature n has the name in line n of `name-features.txt` if there is one, else that in the model, else `xgboost_input_n`.

Universal Binary JSON is big-endian, and every value begins with a marker. Arrays that say the type of their elements
become arrays of NumPy, all else becomes as JSON does. The content is not trusted: no count is believed beyond the bytes
that are there, and depth and number of values are bounded. Format: https://ubjson.org/type-reference/

Vespa: https://docs.vespa.ai/en/ranking/xgboost.html
Differs: in dumps, statistics are passed over, and splits without a condition (indicators) or by categories refused. In
saved models, leaves have the values that XGBoost itself predicts with (Vespa takes the weights before leaves were made
of them: other ones after pruning, or where leaves are fitted to quantiles); splits by categories and models of several
outputs are refused, which Vespa gets wrong in silence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core.clock import check_time
from paperwasp.ranking.forest import Forest, ForestBuilder, Split, number_of
from paperwasp.text.large_json import load_json_without

_NO_TREES: Final = "it holds no trees: a list of them is expected"


def read_xgboost(content: bytes) -> Forest:
    """The forest of a dump, of which a few trees at a time are objects.

    Errors: ValueError that says what is wrong; orjson.JSONDecodeError, which is one, with the place.
    """
    builder = ForestBuilder()

    def take(trees: list[Any]) -> None:
        for tree in trees:
            if not isinstance(tree, dict):
                raise ValueError(_NO_TREES)
            builder.tree(tree, _node_of_object)

    dump = load_json_without(content, "", lambda: take)
    if not isinstance(dump, list):
        if isinstance(dump, dict) and "learner" in dump:
            raise ValueError('it is a saved model: save it as .ubj, or write dump_model(file, dump_format="json")')
        raise ValueError(_NO_TREES)
    return builder.forest()


def _node_of_object(node: Any) -> Split | float:
    if not isinstance(node, Mapping):
        raise ValueError("a node is no object")
    children = node.get("children")
    if children is None:
        return number_of(node, "leaf")
    if not isinstance(children, list) or len(children) != 2 or not all(isinstance(each, dict) for each in children):
        raise ValueError("a split has not two children")
    feature = node.get("split")
    if not isinstance(feature, str) or not feature:
        raise ValueError("a split names no feature")
    if type(node.get("split_condition")) not in (int, float):
        raise ValueError(
            f"the split on {feature!r} has no number as split_condition: indicators and categories are not known"
        )
    with np.errstate(over="ignore"):
        threshold = float(np.float32(number_of(node, "split_condition")))
    yes, no = children if children[0].get("nodeid") == node.get("yes") else reversed(children)
    name = f"xgboost_input_{feature}" if feature.isascii() and feature.isdecimal() else feature
    return Split(name, yes, no, node.get("missing", 0) == node.get("yes", 0), threshold)


# Saved models

_LEAF: Final = -1
_COLUMNS: Final = ("left_children", "right_children", "split_indices", "split_conditions", "default_left")


def names_in(text: str) -> tuple[str, ...]:
    """The names of features in a file: one a line, without those that are empty or begin with #."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def read_saved_xgboost(saved: Any, names: Sequence[str] = ()) -> Forest:
    """The forest of a model that was parsed. `names`: in place of those in it. Errors: ValueError."""
    learner = _member(saved, "it", "learner", dict)
    booster = _member(learner, "the learner", "gradient_booster", dict)
    if booster.get("name", "gbtree") != "gbtree":
        raise ValueError(f"its booster is {str(booster['name'])[:40]!r}, and only gbtree is a sum of trees")
    model = _member(booster, "the booster", "model", dict)
    _check_one_output(learner, model)
    names = names or _names(learner)
    builder = ForestBuilder()
    for number, tree in enumerate(_member(model, "the booster", "trees", list)):
        try:
            _add_tree(builder, tree, names)
        except ValueError as error:
            raise ValueError(f"tree {number}: {error}") from None
    return builder.forest(_base(learner))


def _member(owner: Any, what: str, key: str, kind: type) -> Any:
    value = owner.get(key) if isinstance(owner, dict) else None
    if not isinstance(value, kind):
        raise ValueError(f"{what} has no {key}: a model that save_model wrote is expected")
    return value


def _parameter(learner: Mapping[str, Any], name: str, default: str) -> str:
    parameters = learner.get("learner_model_param")
    return str(parameters.get(name, default)) if isinstance(parameters, dict) else default


def _check_one_output(learner: Mapping[str, Any], model: Mapping[str, Any]) -> None:
    groups = model.get("tree_info")
    if (
        _parameter(learner, "num_class", "0") not in ("0", "1")
        or _parameter(learner, "num_target", "1") not in ("0", "1")
        or any(group != 0 for group in (() if groups is None else groups))
    ):
        raise ValueError("it has several classes or targets, and the value of a model is one number")


def _names(learner: Mapping[str, Any]) -> Sequence[str]:
    names = learner.get("feature_names")
    found = names if isinstance(names, list) else []
    if not all(isinstance(name, str) for name in found):
        raise ValueError("feature_names has something that is no text")
    return found


def _base(learner: Mapping[str, Any]) -> float:
    """The number that is added to the trees. As text: a number, in brackets since XGBoost 3.1. Errors: ValueError."""
    objective = learner.get("objective")
    is_logistic = isinstance(objective, dict) and str(objective.get("name")).endswith(":logistic")
    raw = _parameter(learner, "base_score", "0.5" if is_logistic else "0")
    try:
        base = float(raw.strip("[]"))
    except ValueError:
        raise ValueError(f"its base_score is no number, but {raw[:40]!r}") from None
    if not math.isfinite(base) or (is_logistic and not 0 < base < 1):
        wanted = "between 0 and 1 for a logistic objective" if is_logistic else "finite"
        raise ValueError(f"its base_score is {raw[:40]}, and it must be {wanted}")
    return math.log(base) - math.log(1 - base) if is_logistic else base


def _add_tree(builder: ForestBuilder, tree: Any, names: Sequence[str]) -> None:
    if not isinstance(tree, dict):
        raise ValueError("it is no object")
    columns = [_column(tree, name) for name in _COLUMNS]
    left, right, features, _, _ = columns
    if not len(left) or len({len(column) for column in columns}) > 1:
        raise ValueError(f"{', '.join(_COLUMNS)} are not of one length above 0")
    if "split_type" in tree and np.any(_column(tree, "split_type") != 0):
        raise ValueError("it has splits by categories, which are not known: train without enable_categorical")
    parameters = tree.get("tree_param")
    if isinstance(parameters, dict) and str(parameters.get("size_leaf_vector", "1")) not in ("0", "1"):
        raise ValueError("its leaves have several values")
    is_split = left != _LEAF
    children = np.concatenate((left[is_split], right[is_split]))
    if np.any((children <= 0) | (children >= len(left))) or len(np.unique(children)) < len(children):
        raise ValueError("its nodes are no tree: a child is out of bounds, or that of two")
    needed = int(features[is_split].max(initial=-1)) + 1
    if np.any(features[is_split] < 0) or needed > (len(names) or limits.FOREST_FEATURES):
        raise ValueError(f"a split asks for feature {needed - 1}, and there are {len(names)} names")
    builder.tree(0, partial(_node_of_columns, [column.tolist() for column in columns], names))


def _column(tree: Mapping[str, Any], name: str) -> NDArray[Any]:
    raw = tree.get(name)
    if isinstance(raw, list) and all(type(each) in (int, float, bool) for each in raw):
        raw = np.array(raw) if raw else np.zeros(0, np.int64)
    kinds, dtype = ("iuf", np.float32) if name == "split_conditions" else ("iub", np.int64)
    if not isinstance(raw, np.ndarray) or raw.dtype.kind not in kinds:
        raise ValueError(f"{name} is no array of {'numbers' if 'f' in kinds else 'integers'}")
    with np.errstate(over="ignore"):
        return raw.astype(dtype)


def _node_of_columns(columns: Sequence[Sequence[Any]], names: Sequence[str], node: int) -> Split | float:
    """`columns`: of `_COLUMNS`."""
    left, right, features, conditions, missing_left = columns
    condition: float = conditions[node]
    if not math.isfinite(condition):
        raise ValueError(f"node {node} has no finite number in split_conditions")
    if left[node] == _LEAF:
        return condition
    place = features[node]
    name = names[place] if names else f"xgboost_input_{place}"
    return Split(name, left[node], right[node], missing_left[node] != 0, condition)


# Universal Binary JSON

_NUMBERS: Final[Mapping[str, np.dtype[Any]]] = {
    "i": np.dtype(">i1"),
    "U": np.dtype(">u1"),
    "I": np.dtype(">i2"),
    "l": np.dtype(">i4"),
    "L": np.dtype(">i8"),
    "d": np.dtype(">f4"),
    "D": np.dtype(">f8"),
}
_BETWEEN_LOOKS: Final = 1024
"""Values between two looks at the clock."""
_LENGTHS: Final = frozenset("iUIlL")
_CONSTANTS: Final = {"Z": None, "T": True, "F": False}


def read_ubjson(content: bytes) -> Any:
    """The value that the content is. Errors: ValueError that says where in it."""
    reader = _Reader(content)
    value = reader.value(reader.marker(), 0)
    if reader.at != len(content):
        raise ValueError(f"byte {reader.at}: something follows the value")
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.at = 0
        self._content = content
        self._values = 0

    def value(self, marker: str, depth: int) -> Any:
        """Reads the value that follows a marker. Errors: ValueError if it is unknown, or there is too much."""
        self._values += 1
        if self._values % _BETWEEN_LOOKS == 0:
            check_time()
        if self._values > limits.UBJSON_VALUES:
            raise ValueError(f"it has more than {limits.UBJSON_VALUES} values")
        if depth > limits.UBJSON_DEPTH:
            raise ValueError(f"byte {self.at}: it is nested deeper than {limits.UBJSON_DEPTH} levels")
        if marker in _NUMBERS:
            return self._numbers(_NUMBERS[marker], 1)[0].item()
        if marker == "S":
            return self._text()
        if marker == "{":
            return self._object(depth)
        if marker == "[":
            return self._array(depth)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        raise ValueError(f"byte {self.at - 1}: {marker!r} begins no value")

    def marker(self) -> str:
        """The next one; no-ops are passed over."""
        while (found := self._take(1)) == b"N":
            pass
        return found.decode("latin-1")

    def _take(self, size_bytes: int) -> bytes:
        end = self.at + size_bytes
        if end > len(self._content):
            raise ValueError(f"byte {len(self._content)}: it is cut off")
        self.at, start = end, self.at
        return self._content[start:end]

    def _numbers(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        found = np.frombuffer(self._take(count * dtype.itemsize), dtype)
        return found.astype(dtype.newbyteorder("="))

    def _length(self) -> int:
        start = self.at
        marker = self.marker()
        if marker not in _LENGTHS:
            raise ValueError(f"byte {start}: {marker!r} begins no length")
        length: int = self._numbers(_NUMBERS[marker], 1)[0].item()
        if not 0 <= length <= len(self._content) - self.at:
            raise ValueError(f"byte {start}: {length} is no length that the rest could have")
        return length

    def _text(self) -> str:
        start = self.at
        try:
            return self._take(self._length()).decode()
        except UnicodeDecodeError:
            raise ValueError(f"byte {start}: a text is not UTF-8") from None

    def _head(self, end: str) -> tuple[str, int | None]:
        """The type of all elements and their number, where they stand before them; consumes an empty container."""
        type_, count = "", None
        if self._next() == "$":
            self._take(1)
            type_ = self.marker()
        if self._next() == "#":
            self._take(1)
            count = self._length()
        elif type_:
            raise ValueError(f"byte {self.at}: the number of elements of one type is not said")
        elif self._next() == end:
            self._take(1)
            count = 0
        return type_, count

    def _next(self) -> str:
        return self._content[self.at : self.at + 1].decode("latin-1")

    def _array(self, depth: int) -> Any:
        type_, count = self._head("]")
        if type_ in _NUMBERS:
            return self._numbers(_NUMBERS[type_], count or 0)
        if type_ in _CONSTANTS:
            raise ValueError(f"byte {self.at}: an array of {type_!r} has no bytes to count")
        found = list[Any]()
        while count is None or len(found) < count:
            marker = type_ or self.marker()
            if count is None and marker == "]":
                break
            found.append(self.value(marker, depth + 1))
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        type_, count = self._head("}")
        found: dict[str, Any] = {}
        read = 0
        while count is None or read < count:
            if count is None and self._next() == "}":
                self._take(1)
                break
            key = self._text()
            found[key] = self.value(type_ or self.marker(), depth + 1)
            read += 1
        return found
