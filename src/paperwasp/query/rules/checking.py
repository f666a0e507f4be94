"""Checks of a rule base as a whole, whose files are each right: unknown names, conditions without end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from paperwasp import limits
from paperwasp.errors import LanguageError, Position
from paperwasp.query.rules.conditions import Choice, Condition, Named, Reference, Sequence, Super, Term
from paperwasp.query.rules.rules import ProducedReference, Rule


class Check:
    """Looks through the rules and conditions of one rule base. Errors: LanguageError at the first mistake."""

    def __init__(
        self, name: str, conditions: Mapping[str, Condition], positions: Mapping[str, Position], has_automaton: bool
    ) -> None:
        """`positions`: of the conditions."""
        self._base = name
        self._conditions = conditions
        self._positions = positions
        self._has_automaton = has_automaton
        self._depths: dict[str, int] = {}
        self._names: dict[str, frozenset[str]] = {}

    def all(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            self._references(rule.condition, rule.position)
        for name, condition in self._conditions.items():
            self._references(condition, self._positions.get(name))
        for name in self._conditions:
            self._depth(name, ())
        for rule in rules:
            self._productions(rule)

    def _references(self, condition: Condition, position: Position | None) -> None:
        for part in _walk(condition):
            if isinstance(part, Super):
                raise LanguageError("@super stands in named conditions only", position)
            if isinstance(part, Reference) and part.condition not in self._conditions:
                problem = f"Referenced condition '{part.condition}' does not exist in rule base '{self._base}'"
                if self._has_automaton:
                    problem += ": there are no automata here, so that conditions have to be in the rule base"
                raise LanguageError(problem, position)

    def _depth(self, name: str, path: tuple[str, ...]) -> int:
        """How many named conditions refer to each other from this one on."""
        known = self._depths.get(name)
        if known is not None:
            return known
        position = self._positions.get(path[0] if path else name)
        if name in path:
            raise LanguageError(f"Condition '{path[0]}' refers to itself: {' → '.join((*path, name))}", position)
        if len(path) >= limits.RULE_DEPTH:
            raise LanguageError(f"Conditions refer to each other over {limits.RULE_DEPTH} levels", position)
        below = _find_references(self._conditions[name])
        depth = 1 + max((self._depth(inner, (*path, name)) for inner in below), default=0)
        if depth > limits.RULE_DEPTH:
            raise LanguageError(f"Conditions refer to each other over {limits.RULE_DEPTH} levels", position)
        self._depths[name] = depth
        return depth

    def _productions(self, rule: Rule) -> None:
        known = self._names_in(rule.condition)
        for production in rule.productions:
            name = getattr(production, "name", "")
            if name and name not in known:
                among = f"; it has {', '.join(sorted(known))}" if known else ""
                raise LanguageError(f"Nothing in the condition is called '{name}'{among}", rule.position)
            if isinstance(production, ProducedReference) and production.is_all:
                self._all_terms(name, rule)

    def _names_in(self, condition: Condition) -> frozenset[str]:
        """The names that a production can refer to."""
        found: set[str] = set()
        for part in _walk(condition):
            if isinstance(part, Named):
                found.add(part.name)
            elif isinstance(part, Reference):
                name = part.condition
                if name not in self._names:
                    self._names[name] = self._names_in(self._conditions[name])
                found |= self._names[name]
        return frozenset(found)

    def _all_terms(self, name: str, rule: Rule) -> None:
        condition = self._conditions.get(name)
        if condition is None or any(words_of(part) is None for part in alternatives_of(condition)):
            raise LanguageError(
                f"[{name}*] cannot be produced: '{name}' is not the name of a condition that is a choice of words",
                rule.position,
            )


def alternatives_of(condition: Condition) -> tuple[Condition, ...]:
    """The alternatives of a choice; else the condition alone."""
    return condition.parts if isinstance(condition, Choice) else (condition,)


def words_of(condition: Condition) -> tuple[str, ...] | None:
    """The words of a condition that is nothing but words."""
    if isinstance(condition, Term):
        return (condition.text,)
    if not isinstance(condition, Sequence):
        return None
    words = tuple(part.text for part in condition.parts if isinstance(part, Term))
    return words if len(words) == len(condition.parts) else None


def _walk(condition: Condition) -> Iterator[Condition]:
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += part.inside()


def _find_references(condition: Condition) -> set[str]:
    return {part.condition for part in _walk(condition) if isinstance(part, Reference)}
