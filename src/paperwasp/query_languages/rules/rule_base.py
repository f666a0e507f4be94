"""Productions, rules and rule bases, joined and checked. Immutable.

Vespa: https://docs.vespa.ai/en/reference/querying/semantic-rules.html
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field
from msgspec.structs import force_setattr

from paperwasp.errors import InvalidQuery, Position
from paperwasp.query_languages.rules.conditions import Choice, Condition, Form, Forms, Speech

TERM_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"?": "or", "=": "equiv", "+": "and", "$": "rank", "-": "not", "~": "weakAnd"}
)
"""Sign of a production → the kind of branch that what it produces is to be in."""


class Production(Struct, frozen=True):
    """Terms that a rule produces."""

    label: str | None = None
    type: str = ""
    """A key of TERM_TYPES; empty: as the terms around it."""
    weight: int = 100

    def inner(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        label = "" if self.label is None else f"{self.label}:"
        weight = "" if self.weight == 100 else f"!{self.weight}"
        return f"{self.type}{label}{self.inner()}{weight}"


class ProducedWords(Production, frozen=True):
    """A word, or a phrase."""

    words: tuple[str, ...] = ()
    is_phrase: bool = False

    def inner(self) -> str:
        text = " ".join(self.words)
        return f'"{text}"' if self.is_phrase else text


class ProducedReference(Production, frozen=True):
    """The terms that a condition matched; with `is_all`, every alternative of the named condition."""

    name: str = ""
    is_all: bool = False

    def inner(self) -> str:
        return f"[{self.name}{'*' if self.is_all else ''}]"


class ProducedRange(Production, frozen=True):
    """Values below or above a number, which is written here or was matched."""

    operator: str = "<"
    number: str = ""
    name: str = ""

    def inner(self) -> str:
        return f"{self.operator}{f'[{self.name}]' if self.name else self.number}"


class ProducedParameter(Production, frozen=True):
    """A parameter of the request."""

    key: str = ""
    value: str = ""

    def inner(self) -> str:
        return f"parameter.{self.key}='{self.value}'"


class Rule(Struct, frozen=True, eq=False):
    """A production rule. Compared by identity."""

    condition: Condition
    is_replacing: bool
    productions: tuple[Production, ...]
    position: Position | None = None
    references: frozenset[str] = frozenset()
    """The names that the productions refer to."""

    def __post_init__(self) -> None:
        names = (getattr(production, "name", "") for production in self.productions)
        force_setattr(self, "references", frozenset(name for name in names if name))

    @property
    def removes(self) -> bool:
        """True where the match is replaced by nothing."""
        return self.is_replacing and not self.productions

    @property
    def produces_all(self) -> bool:
        return any(isinstance(production, ProducedReference) and production.is_all for production in self.productions)

    def __str__(self) -> str:
        produced = " ".join(map(str, self.productions))
        return f"{self.condition} {'->' if self.is_replacing else '+>'} {produced}"


class RuleBase(Struct, frozen=True, eq=False):
    """The rules of a file with all that it includes, in the order in which they are evaluated."""

    name: str
    rules: tuple[Rule, ...]
    conditions: Mapping[str, Condition]
    is_default: bool
    begins: tuple[Forms, ...]
    """For each rule, the forms that its match can begin with."""
    choices: Mapping[Choice, Mapping[Form, tuple[Condition, ...]]]
    """See `Scene.choices`."""
    speeches: frozenset[Speech]
    """The speeches of all terms that a rule can begin with."""


class RuleBases(Struct, frozen=True):
    """The rule bases of an application."""

    by_name: Mapping[str, RuleBase] = field(default_factory=dict)
    default: RuleBase | None = None

    def named(self, name: str) -> RuleBase | None:
        """Return the rule base of that name, with or without what is behind its last dot; the default one for no name.

        Errors: InvalidQuery.
        """
        if not name:
            return self.default
        found = self.by_name.get(name.rpartition(".")[0] or name)
        if found is None:
            known = f". There are {', '.join(sorted(self.by_name))}" if self.by_name else ": there are no rule bases"
            raise InvalidQuery(f"Requested rule base '{name}' does not exist{known}")
        return found


NO_RULES: Final = RuleBases()
