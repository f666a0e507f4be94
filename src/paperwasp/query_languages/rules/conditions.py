"""Conditions: the left sides of rules, which match the terms of a query. One class a kind.

A condition gives every state in which its match may end, the most wanted first: the condition around it goes on from
the next when the first leads nowhere. Nothing of a query is changed meanwhile. A term of a rule is a term of a query
where their forms are the same (`Speech`).

Vespa: https://docs.vespa.ai/en/reference/querying/semantic-rules.html#condition, the directives `stemming` and
`language` included.
Differs: a `!` over several words looks past one word; `&` is executed; a phrase condition stays within one phrase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from paperwasp import limits
from paperwasp.core.clock import check_time
from paperwasp.errors import InvalidQuery
from paperwasp.query_languages.rules.tree import DEFAULT_INDEX, Branch, Leaf
from paperwasp.text.linguistics import ENGLISH, Language, TextProfile

_PROFILE = TextProfile()


class Speech(Struct, frozen=True):
    """The comparison of the terms of one file of rules."""

    stemming: bool = True
    """False: as they are written."""
    language: Language = ENGLISH

    def form(self, word: str) -> str:
        """Return the form of a word: two words are one term where their forms are the same."""
        return _form(word, self.language) if self.stemming else word


@lru_cache(maxsize=65536)
def _form(word: str, language: Language) -> str:
    found = _PROFILE.terms(word, language=language)
    return found[0] if found else word


Form = tuple[Speech, str]
Forms = frozenset[Form] | None
"""The forms that a match of a condition can begin with; None: any form, or no term at all."""


class Match(NamedTuple):
    """A leaf that a condition matched."""

    leaf: Leaf
    text: str
    """The text that is produced where a production refers to the match."""
    name: str | None
    """The name by which productions refer to the match."""


Matches = tuple["Matches", Match] | None
"""A chain, the last match first."""


class MatchState(NamedTuple):
    """A position between the terms of a query, and the matches up to there."""

    position: int
    matches: Matches = None
    value: str | tuple[int, int] | None = None
    """The value of the condition that ended here; two numbers mean the terms between these positions."""


class Steps:
    """Counts the steps that a query takes. Errors: InvalidQuery when they are too many; OutOfTime."""

    def __init__(self) -> None:
        self.left = limits.RULE_STEPS

    def take(self, count: int = 1) -> None:
        check_time()
        self.left -= count
        if self.left < 0:
            raise InvalidQuery(f"Evaluating semantic rules over this query takes more than {limits.RULE_STEPS} steps")


class Scene(Struct, frozen=True):
    """The surroundings in which conditions are evaluated: the query, its parameters, and its rule base."""

    leaves: list[Leaf]
    parameters: Mapping[str, str]
    conditions: Mapping[str, Condition]
    """The named conditions of the rule base."""
    choices: Mapping[Choice, Mapping[Form, tuple[Condition, ...]]]
    """For long choices, their alternatives by the forms that they begin with."""
    wanted: frozenset[str]
    """The names that the production refers to."""
    steps: Steps
    label: str | None = None
    name: str | None = None

    def within(self, label: str | None, name: str | None) -> Scene:
        """The same inside a label or a name."""
        return Scene(self.leaves, self.parameters, self.conditions, self.choices, self.wanted, self.steps, label, name)

    def leaf(self, position: int) -> Leaf | None:
        return self.leaves[position] if position < len(self.leaves) else None

    def has_label(self, leaf: Leaf) -> bool:
        if self.label is None:
            return leaf.index in ("", DEFAULT_INDEX)
        return leaf.index == self.label

    def passed(self, here: MatchState, leaf: Leaf, text: str, value: str | None = None) -> MatchState:
        """Return the state behind a leaf that was matched."""
        return MatchState(here.position + 1, (here.matches, Match(leaf, text, self.name)), value)

    def value_of(self, state: MatchState) -> str | None:
        if isinstance(state.value, tuple):
            return " ".join(leaf.written for leaf in self.leaves[slice(*state.value)])
        return state.value


def form_of(leaf: Leaf, speech: Speech) -> str | None:
    """Return the form of a leaf that is a word."""
    if leaf.text is None:
        return None
    form = leaf.forms.get(speech)
    if form is None:
        form = leaf.forms[speech] = speech.form(leaf.text)
    return form


class Condition:
    """One kind of condition. Compared by identity: two that read alike are two."""

    __slots__ = ()

    def inside(self) -> tuple[Condition, ...]:
        """The conditions inside this one."""
        return ()

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        """Return the states in which a match from here on may end, the most wanted first."""
        raise NotImplementedError

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        """The forms that a match can begin with."""
        return None

    def takes_terms(self, conditions: Mapping[str, Condition]) -> bool:
        """Tell whether this is about the terms of the query."""
        return any(part.takes_terms(conditions) for part in self.inside())

    def inner(self) -> str:
        """As text, where it stands in another condition."""
        return str(self)


class Term(Struct, Condition, frozen=True, eq=False):
    """A word."""

    text: str
    speech: Speech

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        scene.steps.take()
        leaf = scene.leaf(here.position)
        form = self.speech.form(self.text)
        if leaf is not None and form_of(leaf, self.speech) == form and scene.has_label(leaf):
            yield scene.passed(here, leaf, self.text, form)

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        return frozenset({(self.speech, self.speech.form(self.text))})

    def takes_terms(self, conditions: Mapping[str, Condition]) -> bool:
        return True

    def __str__(self) -> str:
        return self.text


class Parameter(Struct, Condition, frozen=True, eq=False):
    """A parameter of the request that is set; the value is its own."""

    key: str

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        scene.steps.take()
        value = scene.parameters.get(self.key)
        if value is not None:
            yield here._replace(value=value)

    def __str__(self) -> str:
        return f"parameter.{self.key}"


class Reference(Struct, Condition, frozen=True, eq=False):
    """A named condition."""

    condition: str

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        scene.steps.take()
        return scene.conditions[self.condition].ends(here, scene)

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        return conditions[self.condition].begins(conditions)

    def takes_terms(self, conditions: Mapping[str, Condition]) -> bool:
        return conditions[self.condition].takes_terms(conditions)

    def __str__(self) -> str:
        return f"[{self.condition}]"


class Ellipsis(Struct, Condition, frozen=True, eq=False):
    """Any terms, as many as the rest leaves."""

    is_referable: bool

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        count = len(scene.leaves)
        scene.steps.take(1 + (count - here.position) // 8)
        states = [here._replace(value=(here.position, here.position))]
        for leaf in scene.leaves[here.position :]:
            state = scene.passed(states[-1], leaf, leaf.written)
            states.append(state._replace(value=(here.position, state.position)))
        return reversed(states)

    def takes_terms(self, conditions: Mapping[str, Condition]) -> bool:
        return True

    def __str__(self) -> str:
        return "[...]" if self.is_referable else "..."


class Literal(Struct, Condition, frozen=True, eq=False):
    """A value to compare with. Always true."""

    value: str

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        yield here._replace(value=self.value)

    def __str__(self) -> str:
        return f"'{self.value}'"


class _Composite(Struct, Condition, frozen=True, eq=False):
    """A condition that is made of others."""

    parts: tuple[Condition, ...]

    def inside(self) -> tuple[Condition, ...]:
        return self.parts

    def inner(self) -> str:
        return f"({self})"


class Sequence(_Composite, frozen=True, eq=False):
    """Conditions that match in sequence."""

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        opened = [self.parts[0].ends(here, scene)]
        while opened:
            state = next(opened[-1], None)
            if state is None:
                opened.pop()
            elif len(opened) == len(self.parts):
                yield state
            else:
                opened.append(self.parts[len(opened)].ends(state, scene))

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        return self.parts[0].begins(conditions)

    def __str__(self) -> str:
        return " ".join(part.inner() for part in self.parts)


class Choice(_Composite, frozen=True, eq=False):
    """The first of the alternatives that matches: the others are not tried then."""

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        for alternative in self._alternatives(here, scene):
            scene.steps.take()
            state = None
            for state in alternative.ends(here, scene):
                yield state
            if state is not None:
                return

    def _alternatives(self, here: MatchState, scene: Scene) -> tuple[Condition, ...]:
        by_form = scene.choices.get(self)
        if by_form is None:
            return self.parts
        leaf = scene.leaf(here.position)
        if leaf is None:
            return ()
        speeches = {speech for speech, _ in by_form}
        found = [by_form.get((speech, form_of(leaf, speech) or ""), ()) for speech in speeches]
        if len(found) == 1:
            return found[0]
        among = {alternative for alternatives in found for alternative in alternatives}
        return tuple(part for part in self.parts if part in among)

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        found: set[Form] = set()
        for part in self.parts:
            forms = part.begins(conditions)
            if forms is None:
                return None
            found |= forms
        return frozenset(found)

    def __str__(self) -> str:
        return ", ".join(str(part) if isinstance(part, Sequence) else part.inner() for part in self.parts)


class And(_Composite, frozen=True, eq=False):
    """All of the conditions from the same position on; it ends where the last of them does."""

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        matches = here.matches
        for part in self.parts[:-1]:
            found = next(part.ends(here._replace(matches=matches), scene), None)
            if found is None:
                return
            matches = found.matches
        yield from self.parts[-1].ends(here._replace(matches=matches), scene)

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        return self.parts[0].begins(conditions)

    def __str__(self) -> str:
        return " & ".join(part.inner() for part in self.parts)


class Not(_Composite, frozen=True, eq=False):
    """True where the condition is not. The word that is another one is matched."""

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        (condition,) = self.parts
        if next(condition.ends(here, scene), None) is not None:
            return
        leaf = scene.leaf(here.position)
        if leaf is not None and scene.has_label(leaf) and condition.takes_terms(scene.conditions):
            yield scene.passed(here, leaf, leaf.written)
        else:
            yield here._replace(value=None)

    def inner(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"!{self.parts[0].inner()}"


class Comparison(Struct, Condition, frozen=True, eq=False):
    """True where both are, from the same position on, and their values compare so. Values are texts."""

    left: Condition
    operator: str
    right: Condition

    def inside(self) -> tuple[Condition, ...]:
        return self.left, self.right

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        holds = _HOLDS[self.operator]
        for left in self.left.ends(here, scene):
            for right in self.right.ends(here._replace(matches=left.matches), scene):
                scene.steps.take()
                if holds(scene.value_of(left), scene.value_of(right)):
                    yield right

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        return self.left.begins(conditions)

    def __str__(self) -> str:
        return f"{self.left.inner()}{self.operator}{self.right.inner()}"


def _comparison(holds: Callable[[str, str], bool]) -> Callable[[str | None, str | None], bool]:
    return lambda left, right: left is not None and right is not None and holds(left, right)


_HOLDS: Final[Mapping[str, Callable[[str | None, str | None], bool]]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "=~": _comparison(lambda left, right: right in left),
    "<": _comparison(lambda left, right: left < right),
    "<=": _comparison(lambda left, right: left <= right),
    ">": _comparison(lambda left, right: left > right),
    ">=": _comparison(lambda left, right: left >= right),
}
COMPARISONS: Final = frozenset(_HOLDS)


class InPhrase(_Composite, frozen=True, eq=False):
    """The terms of one phrase, or some of them."""

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        leaf = scene.leaf(here.position)
        phrase = leaf.parent if leaf is not None else None
        if leaf is None or not (isinstance(phrase, Branch) and phrase.is_phrase):
            return
        if scene.label is not None and not scene.has_label(leaf):
            return
        for state in self.parts[0].ends(here, scene):
            scene.steps.take()
            last = scene.leaves[state.position - 1] if state.position else leaf
            if last.parent is phrase or state.position == here.position:
                yield state

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        return self.parts[0].begins(conditions)

    def __str__(self) -> str:
        return f'"{self.parts[0]}"'


class _Around(_Composite, frozen=True, eq=False):
    """A condition with something said of it."""

    def begins(self, conditions: Mapping[str, Condition]) -> Forms:
        return self.parts[0].begins(conditions)


class Labeled(_Around, frozen=True, eq=False):
    """Over terms in this index."""

    label: str

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        return self.parts[0].ends(here, scene.within(self.label, scene.name))

    def __str__(self) -> str:
        return f"{self.label}:{self.parts[0].inner()}"


class Named(_Around, frozen=True, eq=False):
    """A condition with a name, by which a production refers to its match. Of nested names the innermost counts."""

    name: str

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        if self.name not in scene.wanted:
            return self.parts[0].ends(here, scene)
        return self.parts[0].ends(here, scene.within(scene.label, self.name))

    def __str__(self) -> str:
        text = self.parts[0].inner()
        return text if text.rpartition(":")[2] == f"[{self.name}]" else f"{self.name}/{text}"


class Anchored(_Around, frozen=True, eq=False):
    """At the start of the query, or to its end, or both."""

    at_start: bool
    at_end: bool

    def ends(self, here: MatchState, scene: Scene) -> Iterator[MatchState]:
        if self.at_start and here.position:
            return
        for state in self.parts[0].ends(here, scene):
            if not self.at_end or state.position == len(scene.leaves):
                yield state

    def __str__(self) -> str:
        return f"{'. ' if self.at_start else ''}{self.parts[0]}{' .' if self.at_end else ''}"


class Super(Struct, Condition, frozen=True, eq=False):
    """Stands for the condition of the same name in an included rule base, until rule bases are joined."""

    def __str__(self) -> str:
        return "@super"


def matches_of(state: MatchState) -> list[Match]:
    """Return the matches up to a state, in the order of the conditions."""
    found: list[Match] = []
    chain = state.matches
    while chain is not None:
        chain, match = chain
        found.append(match)
    return found[::-1]
