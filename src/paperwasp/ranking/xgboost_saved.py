"""XGBoost models in the form of `save_model("name.ubj")`: trees as columns, with base score, objective and names.

As Vespa reads it: the value is the sum of the trees and the base score, which a logistic objective has as a
probability; no function is put around the sum. Feature n has the name in line n of `name-features.txt` if there is
one, else that in the model, else `xgboost_input_n`.
Differs: leaves have the values that XGBoost itself predicts with (Vespa takes the weights before leaves were made of
them: other ones after pruning, or where leaves are fitted to quantiles); splits by categories and models of several
outputs are refused, which Vespa gets wrong in silence.

Vespa: https://docs.vespa.ai/en/ranking/xgboost.html#ubj-format-recommended
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.ranking.forest import Forest, ForestBuilder, Split

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
    builder.tree(0, partial(_read, [column.tolist() for column in columns], names))


def _column(tree: Mapping[str, Any], name: str) -> NDArray[Any]:
    raw = tree.get(name)
    if isinstance(raw, list) and all(type(each) in (int, float, bool) for each in raw):
        raw = np.array(raw) if raw else np.zeros(0, np.int64)
    kinds, dtype = ("iuf", np.float32) if name == "split_conditions" else ("iub", np.int64)
    if not isinstance(raw, np.ndarray) or raw.dtype.kind not in kinds:
        raise ValueError(f"{name} is no array of {'numbers' if 'f' in kinds else 'integers'}")
    with np.errstate(over="ignore"):
        return raw.astype(dtype)


def _read(columns: Sequence[Sequence[Any]], names: Sequence[str], node: int) -> Split | float:
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
