"""The scope in which expressions are compiled (`Scope`), that of a run (`Run`), and the registry of compilers.

A compiled expression takes the value of the expression before it, None where there is none, and gives its own. What
`needs_input` is not looked at where there is no value: there is none after it either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, NamedTuple, NoReturn

from paperwasp import limits
from paperwasp.base.records import dataclass
from paperwasp.document.ids import DocumentId
from paperwasp.document.types import DataType
from paperwasp.errors import LanguageError, Timeout
from paperwasp.indexing.components import BUILT_IN, Components
from paperwasp.indexing.context import Context, TimeLeft, no_end
from paperwasp.schema.indexing_tree import Expression

Value = Any
"""A typed value of a document, as `document.values` says, or None."""


class ScriptError(ValueError):
    """A value with which a script cannot go on."""


@dataclass(slots=True)
class Run:
    """One document, or the values of one update, on the way through the scripts of its schema."""

    inputs: Mapping[str, Value]
    id: DocumentId
    now_seconds: int
    random: Callable[[int], int]
    """From a bound to a whole number from 0 to below it."""
    is_update: bool = False
    language: str = ""
    """The tag that `set_language` has set; empty: none."""
    variables: MutableMapping[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    characters_left: int = limits.INDEXING_CHARACTERS
    """How much text the scripts may still put together, for all fields."""
    elements_left: int = limits.INDEXING_ELEMENTS
    time_left: TimeLeft = no_end
    """That of the operation, for components."""

    def text(self, text: str) -> str:
        """A text that was put together. Errors: ScriptError where there are too many."""
        self.characters_left -= len(text)
        if self.characters_left < 0:
            raise ScriptError(f"the scripts make more than {limits.INDEXING_CHARACTERS} characters of one document")
        return text

    def elements(self, count: int) -> None:
        """Counts elements of collections that were made. Errors: ScriptError where there are too many."""
        self.elements_left -= count
        if self.elements_left < 0:
            raise ScriptError(f"the scripts make more than {limits.INDEXING_ELEMENTS} elements of one document")


Step = Callable[[Value, Run], Value]


class Compiled(NamedTuple):
    """One expression, ready to run."""

    run: Step
    type: DataType | None
    """The type of its value; None: it never has one."""
    needs_input: bool = True

    def after(self, value: Value, run: Run) -> Value:
        """Its value after `value`."""
        return None if value is None and self.needs_input else self.run(value, run)


@dataclass(slots=True)
class Scope:
    """The scope of the expressions of one script while they are compiled."""

    owner: str
    """The field that the script makes."""
    type: DataType
    """The type that is needed at the end: that of the field, or of what the expressions after this one need."""
    sources: Mapping[str, DataType]
    """The fields that `input` may name."""
    components: Components = BUILT_IN
    document_type: str = ""
    variables: dict[str, DataType] = field(default_factory=dict)
    warnings: list[LanguageError] = field(default_factory=list)
    """Of a script that can be compiled and does not work as it is, placed in the script."""

    def compile(self, expression: Expression, type_: DataType | None) -> Compiled:
        """The expression after a value of `type_` (None: no value). Errors: LanguageError, placed in the script."""
        return COMPILERS[expression.keyword](expression, type_, self)

    @property
    def destination(self) -> str:
        """The field that the script makes, with its document type."""
        return f"{self.document_type}.{self.owner}"

    def context(self, run: Run, arguments: tuple[str, ...]) -> Context:
        """The context in which a component is called. Errors: Timeout where the time of the operation is over."""
        left = run.time_left()
        if left <= 0:
            raise Timeout("the operation's time is over")
        return Context(self.destination, run.language, arguments, left)

    def fail(self, expression: Expression, message: str) -> NoReturn:
        raise LanguageError(f"For expression '{expression}': {message}", expression.position)

    def warn(self, expression: Expression, message: str) -> None:
        """Has a deployment warn of an expression."""
        self.warnings.append(LanguageError(f"For expression '{expression}': {message}", expression.position))

    def expected(self, expression: Expression, what: str, type_: DataType | None) -> NoReturn:
        self.fail(expression, f"Expected {what} input, {f'got {type_}' if type_ else 'but no input is specified'}")

    def before(self, following: Sequence[Expression]) -> Scope:
        """The scope of an expression that these follow."""
        needed = self.type
        for expression in reversed(following):
            if (of := NEEDED.get(expression.keyword)) is not None:
                needed = of(needed)
        return self if needed is self.type else replace(self, type=needed)


NEEDED: Final[dict[str, Callable[[DataType], DataType]]] = {}
"""Keyword → the type that is needed before it, by the one that is needed after it; others change none."""
Compiler = Callable[[Expression, DataType | None, Scope], Compiled]
COMPILERS: Final[dict[str, Compiler]] = {}
"""Keyword → what compiles it; filled by the modules of the families, which `compiler` imports."""


def compiles(*keywords: str) -> Callable[[Compiler], Compiler]:
    """Registers a compiler for expressions of these keywords."""

    def register(compiler: Compiler) -> Compiler:
        COMPILERS.update(dict.fromkeys(keywords, compiler))
        return compiler

    return register
