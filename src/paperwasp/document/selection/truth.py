"""Three-valued logic over sets of truths.

What a condition says of one document is true, false or invalid. Where a field has several values it may be several of
them at once, one for each value: `numbers == 1` is true and false of [1, 2]. Such a set is an integer of three bits,
and an operator is a table from sets to sets. In the end a document matches if true is in the set, and does not if only
false and perhaps invalid are.

Conditions over variables say something for each binding of the variables: `Bound`, binding → set. Operators join them
where the bindings agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from paperwasp import limits

FALSE: Final = 1
INVALID: Final = 2
TRUE: Final = 4

Binding = tuple[tuple[str, object], ...]
"""Variables with what they stand for, by name."""
Bound = dict[Binding, int]
Results = int | Bound
Table = tuple[tuple[int, ...], ...]

_TRUTHS: Final = (FALSE, INVALID, TRUE)


def _conjoin(left: int, right: int) -> int:
    """The conjunction of two single truths: the lower one, since truths are numbered in that order."""
    return min(left, right)


def _table(operator: Callable[[int, int], int]) -> Table:
    def together(left: int, right: int) -> int:
        found = 0
        for one in _TRUTHS:
            for other in _TRUTHS:
                if left & one and right & other:
                    found |= operator(one, other)
        return found

    return tuple(tuple(together(left, right) for right in range(8)) for left in range(8))


AND: Final = _table(_conjoin)
OR: Final = _table(max)
NOT: Final = tuple((s & INVALID) | (TRUE if s & FALSE else 0) | (FALSE if s & TRUE else 0) for s in range(8))


def combine(results: Results) -> int:
    """Reduces results to one truth: true if there is any, else false if there is any, else invalid."""
    if type(results) is int:
        found = results
    else:
        found = 0
        for truths in results.values():  # type: ignore[union-attr]
            found |= truths
        found = found or FALSE
    return TRUE if found & TRUE else FALSE if found & FALSE else INVALID


def negated_results(results: Results) -> Results:
    if isinstance(results, int):
        return NOT[results]
    return {binding: NOT[truths] for binding, truths in results.items()}


def join(left: Results, right: Results, table: Table) -> Results:
    """Combines each of the left with each of the right whose variables stand for the same.

    Invalid as a whole where these would be more than a named limit.
    """
    if isinstance(left, int) and isinstance(right, int):
        return table[left][right]
    left = {(): left} if isinstance(left, int) else left
    right = {(): right} if isinstance(right, int) else right
    found: Bound = {}
    pairs = 0
    groups = _groups(left, right)
    for binding, truths in left.items():
        candidates = groups(binding)
        pairs += len(candidates)
        if pairs > limits.SELECTION_BINDINGS:
            return INVALID
        for other, others in candidates:
            together = _together(binding, other)
            if together is not None:
                found[together] = found.get(together, 0) | table[truths][others]
    return found


def _groups(left: Bound, right: Bound) -> Callable[[Binding], list[tuple[Binding, int]]]:
    """Binding of the left → the bindings of the right that may agree with it, with their truths.

    Found by the variables that all of both have; the others are compared one by one.
    """
    shared = _names_of_all(left) & _names_of_all(right)
    groups: dict[Binding, list[tuple[Binding, int]]] = {}
    for binding, truths in right.items():
        groups.setdefault(_part(binding, shared), []).append((binding, truths))
    return lambda binding: groups.get(_part(binding, shared), [])


def _names_of_all(bindings: Iterable[Binding]) -> frozenset[str]:
    names = [frozenset(name for name, _ in binding) for binding in bindings]
    return frozenset.intersection(*names) if names else frozenset()


def _part(binding: Binding, names: frozenset[str]) -> Binding:
    return tuple(item for item in binding if item[0] in names)


def _together(left: Binding, right: Binding) -> Binding | None:
    merged = dict(left)
    for name, value in right:
        if merged.setdefault(name, value) != value:
            return None
    return tuple(sorted(merged.items(), key=lambda item: item[0]))
