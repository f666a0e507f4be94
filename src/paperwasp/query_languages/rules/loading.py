"""Rule bases, made of the files of an application: inclusion, `@super`, and the checks of several statements.

Vespa: https://docs.vespa.ai/en/linguistics/query-rewriting.html#using-multiple-rule-bases
Differs: there are no automata, conditions that refer to themselves are refused, and so are references that can never be
there, which Vespa finds in queries only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.errors import Finding, LanguageError, Position
from paperwasp.query_languages.rules.conditions import (
    Choice,
    Comparison,
    Condition,
    Form,
    Named,
    Reference,
    Sequence,
    Super,
    Term,
)
from paperwasp.query_languages.rules.grammar import Include, RuleFile, parse_rules
from paperwasp.query_languages.rules.rule_base import NO_RULES, ProducedReference, Rule, RuleBase, RuleBases

_LONG_CHOICE: Final = 4
"""From this number of alternatives on, those that can match are looked up."""


def load_rules(texts: Mapping[str, str]) -> tuple[RuleBases, list[Finding]]:
    """Read the rule bases in files, path → text, with the findings. With an error among these there are no rule bases.

    A rule base has the name of its file, without `.sr`.
    """
    loader = _Loader({PurePosixPath(path).stem: parse_rules(text, path) for path, text in texts.items()})
    bases = loader.load()
    failed = any(finding.level == "ERROR" for finding in loader.findings)
    return (NO_RULES if failed else bases), loader.findings


class _Loader:
    def __init__(self, files: dict[str, RuleFile]) -> None:
        self._files = files
        self.findings: list[Finding] = []

    def load(self) -> RuleBases:
        if len(self._files) > limits.RULE_BASES:
            self._tell(LanguageError(f"{len(self._files)} rule bases; at most {limits.RULE_BASES}"))
            return NO_RULES
        bases: dict[str, RuleBase] = {}
        for name, file in self._files.items():
            for error in file.errors:
                self._tell(error)
            if file.automata is not None:
                automaton, position = file.automata
                message = f"the automaton '{automaton}' is not used: all conditions are read from the rule bases"
                self.findings.append(Finding(message, position, "WARNING"))
            try:
                bases[name] = self._base(name, file)
            except LanguageError as error:
                self._tell(error)
        return RuleBases(MappingProxyType(bases), self._default(bases))

    def _tell(self, error: LanguageError) -> None:
        self.findings.append(Finding(error.bare_message, error.position, "ERROR"))

    def _default(self, bases: Mapping[str, RuleBase]) -> RuleBase | None:
        found = [base for base in bases.values() if base.is_default]
        for other in found[1:]:
            message = f"Both '{found[0].name}' and '{other.name}' are marked as default, there can only be one"
            self.findings.append(Finding(message, Position(self._files[other.name].source, 1, 1), "ERROR"))
        return found[0] if found else None

    def _base(self, name: str, file: RuleFile) -> RuleBase:
        """Make the rule base of a file with all that it includes. Errors: LanguageError."""
        rules: list[Rule] = []
        conditions: dict[str, Condition] = {}
        positions: dict[str, Position] = {}
        self._join(name, rules, conditions, positions, set(), (name,))
        if len(rules) + len(conditions) > limits.RULE_STATEMENTS:
            raise LanguageError(
                f"{len(rules) + len(conditions)} rules and conditions with what is included; at most "
                f"{limits.RULE_STATEMENTS}",
                Position(file.source, 1, 1),
            )
        check = Check(name, conditions, positions, file.automata is not None)
        check.all(rules)
        begins = tuple(rule.condition.begins(conditions) for rule in rules)
        return RuleBase(
            name=name,
            rules=tuple(rules),
            conditions=MappingProxyType(conditions),
            is_default=file.is_default,
            begins=begins,
            choices=MappingProxyType(dict(_long_choices(rules, conditions))),
            speeches=frozenset(speech for forms in begins for speech, _ in forms or ()),
        )

    def _join(
        self,
        name: str,
        rules: list[Rule],
        conditions: dict[str, Condition],
        positions: dict[str, Position],
        seen: set[str],
        path: tuple[str, ...],
    ) -> None:
        """Add the rules of a file in their order; its own conditions go over those that it includes."""
        seen.add(name)
        file = self._files[name]
        for statement in file.statements:
            if isinstance(statement, Rule):
                rules.append(statement)
                continue
            included = self._find_included(statement, path)
            if included not in seen:
                self._join(included, rules, conditions, positions, seen, (*path, included))
        for condition_name, condition in file.conditions.items():
            conditions.pop(condition_name, None)
            conditions[condition_name] = _with_super(condition, partial(self._super, name, condition_name, path))
        positions |= file.positions

    def _find_included(self, include: Include, path: tuple[str, ...]) -> str:
        """Finds the name of the rule base that is included. Errors: LanguageError."""
        name = include.name if include.name in self._files else include.name.removesuffix(".sr")
        if name not in self._files:
            raise LanguageError(f"Could not find included rule base '{include.name}'", include.position)
        if name in path:
            raise LanguageError(f"Rule base '{name}' includes itself: {' → '.join((*path, name))}", include.position)
        if len(path) >= limits.RULE_BASE_DEPTH:
            raise LanguageError(f"Rule bases include each other over {len(path)} levels", include.position)
        return name

    def _super(self, name: str, wanted: str, path: tuple[str, ...]) -> Condition:
        """Find the condition of that name in the first rule base that `name` includes and that has it."""
        file = self._files[name]
        for statement in file.statements:
            if not isinstance(statement, Include):
                continue
            included = self._find_included(statement, path)
            below = (*path, included)
            found = self._files[included].conditions.get(wanted)
            if found is not None:
                return _with_super(found, partial(self._super, included, wanted, below))
            try:
                return self._super(included, wanted, below)
            except _NoSuper:
                continue
        raise _NoSuper(f"@super: no included rule base has a condition '{wanted}'", file.positions.get(wanted))


class _NoSuper(LanguageError):
    """No included rule base has a condition for `@super`."""


def _with_super(condition: Condition, find: Callable[[], Condition]) -> Condition:
    """Put what `find` finds in place of `@super`; a condition without one is returned as it is."""
    if isinstance(condition, Super):
        return find()
    parts = tuple(_with_super(part, find) for part in condition.inside())
    if all(new is old for new, old in zip(parts, condition.inside(), strict=True)):
        return condition
    if isinstance(condition, Comparison):
        return Comparison(parts[0], condition.operator, parts[1])
    return replace(condition, parts=parts)  # type: ignore[type-var]


def _long_choices(
    rules: list[Rule], conditions: Mapping[str, Condition]
) -> Iterator[tuple[Choice, Mapping[Form, tuple[Condition, ...]]]]:
    """Find the choices whose alternatives all begin with words, with the alternatives by these."""
    waiting = [*(rule.condition for rule in rules), *conditions.values()]
    while waiting:
        condition = waiting.pop()
        waiting += condition.inside()
        if isinstance(condition, Choice) and len(condition.parts) >= _LONG_CHOICE:
            by_form: dict[Form, list[Condition]] = {}
            for part in condition.parts:
                forms = part.begins(conditions)
                if forms is None:
                    break
                for form in forms:
                    by_form.setdefault(form, []).append(part)
            else:
                yield condition, {form: tuple(parts) for form, parts in by_form.items()}


# Checks of a rule base


class Check:
    """Checks the rules and conditions of one rule base, whose files are each right: unknown names, endless conditions.

    Errors: LanguageError at the first mistake.
    """

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
        """Count the named conditions that refer to each other from this one on."""
        known = self._depths.get(name)
        if known is not None:
            return known
        position = self._positions.get(path[0] if path else name)
        if name in path:
            raise LanguageError(f"Condition '{path[0]}' refers to itself: {' → '.join((*path, name))}", position)
        if len(path) >= limits.RULE_DEPTH:
            raise LanguageError(f"Conditions refer to each other over {limits.RULE_DEPTH} levels", position)
        below = {part.condition for part in _walk(self._conditions[name]) if isinstance(part, Reference)}
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
        """Return the names that a production can refer to."""
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
    """Return the alternatives of a choice; else the condition alone."""
    return condition.parts if isinstance(condition, Choice) else (condition,)


def words_of(condition: Condition) -> tuple[str, ...] | None:
    """Return the words of a condition that is nothing but words."""
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
