"""XGBoost models in the form of `dump_model(dump_format="json")`: a list of trees. The dump has neither base score nor
objective, so the model is the sum of its trees. What `save_model` writes is read by `xgboost_saved`.

As Vespa reads it: a split goes to `yes` where its feature is less than `split_condition`, which is rounded to a float
as XGBoost has it; a missing feature goes to `yes` if `missing` says so, else to `no`. A feature that is named by a
number n only is `xgboost_input_n`.
Differs: statistics in the dump are passed over, and splits without a condition (indicators) or by categories refused.

Vespa: https://docs.vespa.ai/en/ranking/xgboost.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

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
            builder.tree(tree, _read)

    dump = load_json_without(content, "", lambda: take)
    if not isinstance(dump, list):
        if isinstance(dump, dict) and "learner" in dump:
            raise ValueError('it is a saved model: save it as .ubj, or write dump_model(file, dump_format="json")')
        raise ValueError(_NO_TREES)
    return builder.forest()


def _read(node: Any) -> Split | float:
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
