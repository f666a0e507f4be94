"""Which answers take long to be made of what the clusters have found: these are made outside the event loop.

Everything here looks at few numbers, and at none of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import ParamSpec, TypeVar

from paperwasp import limits
from paperwasp.base.yielding import yielding_to_requests
from paperwasp.container.search.merge import Answer
from paperwasp.container.search.rendering import SearchResult
from paperwasp.document.tensor.value import Tensor
from paperwasp.search.grouping.shown_groups import ShownGroups
from paperwasp.search.query import Hit, SearchResponse

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def has_many_groups(answers: Sequence[Answer]) -> bool:
    """Whether the groups of the clusters take long to be put together, and to be turned into pages."""
    left = limits.INLINE_GROUPS
    for _, answer in answers:
        if not isinstance(answer, SearchResponse):
            continue
        for part in answer.groupings or ():
            left -= limits.GROUPING_AS_GROUPS + sum([len(level.parents) for level in part.levels])
            if left < 0:
                return True
    return False


def is_large(result: SearchResult, *, is_json: bool) -> bool:
    """Whether it takes long to write an answer. As JSON, what hits show of documents is written already."""
    hits, features = result.hits, 0
    size = sum(map(len, filter(None, result.page))) if result.page else 0
    if hits:
        first = hits[0][1]
        if first.match_features or first.summary_features or first.rank_features:
            features = _features_of(first)
        if features * len(hits) > limits.INLINE_FEATURES:
            return True
        if first.explanation is not None and len(hits) > limits.INLINE_EXPLANATIONS:
            return True
        size += sum(map(len, [hit.fields for _, hit in hits]))
    if size > (limits.INLINE_JSON_BYTES if is_json else limits.INLINE_XML_BYTES):
        return True
    if result.groups and _has_many([root.groups for _, root in result.groups]):
        return True
    return features > 0 and _tensor_cells(result) > limits.INLINE_TENSOR_CELLS


def yielding(work: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The work, which lets the event loop have the interpreter's lock soon."""

    def run(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        with yielding_to_requests():
            return work(*given, **named)

    return run


def _features_of(hit: Hit) -> int:
    return sum(len(kind) for kind in (hit.match_features, hit.summary_features, hit.rank_features) if kind)


def _has_many(roots: Iterable[ShownGroups]) -> bool:
    left = limits.INLINE_GROUPS
    for root in roots:
        waiting = [root]
        while waiting:
            groups = waiting.pop()
            count = len(groups.relevances)
            hits = sum([len(found) for lists in groups.hit_lists for found in lists.hits if found is not None])
            left -= limits.GROUPING_AS_GROUPS // 2 + count * (1 + len(groups.outputs)) + hits
            if left < 0:
                return True
            waiting.extend(lists.groups for lists in groups.group_lists)
    return False


def _tensor_cells(result: SearchResult) -> int:
    """The cells of all tensors among the features of hits."""
    kinds = (kind for _, hit in result.hits for kind in (hit.match_features, hit.summary_features, hit.rank_features))
    values = chain.from_iterable(kind.values() for kind in kinds if kind)
    return sum(value.cells.size for value in values if isinstance(value, Tensor))
