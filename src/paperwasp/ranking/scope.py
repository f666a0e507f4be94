"""Where an expression stands: its text and the place of it, and what the names in it are bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import LanguageError, Position, TooLarge
from paperwasp.ranking.expression import parse_expression
from paperwasp.ranking.tree import Named, RankNode, Reference, String
from paperwasp.schema.model import Function
from paperwasp.text.parsing.tokens import position_of


class Source(Struct, frozen=True):
    """The text of an expression. `what` names it in errors, such as `first-phase`.

    `start`: where the text starts in its file. Where that is not known, places are counted within the text, and
    `around` says what the text is part of.
    """

    text: str
    what: str = ""
    start: Position | None = None
    around: str = ""
    is_exact: bool = True
    """True where the text is in the file as it is here; if not, problems anywhere in it are reported at `start`."""

    def parse(self) -> RankNode:
        """The tree; raises LanguageError with the place in the file."""
        try:
            return parse_expression(self.text)
        except LanguageError as error:
            raise self._error_at(error.bare_message, error.position) from None
        except TooLarge as error:
            raise self._error_at(error.message, None) from None

    def position(self, offset: int) -> Position:
        return self._in_file(position_of(self.text, offset, ""))

    def error(self, node: RankNode, message: str) -> LanguageError:
        return self._error_at(message, position_of(self.text, node.start, ""))

    def within(self, node: RankNode, text: str) -> Source:
        """The source of an expression in quotes at `node`."""
        return Source(
            text,
            f"{self.what}, {node}",
            self.position(node.start + 1) if self.start else None,
            self.around,
            self.is_exact,
        )

    def _error_at(self, message: str, position: Position | None) -> LanguageError:
        full_message = f"{self.what}: {message}" if self.start else message
        return LanguageError(full_message, self._in_file(position or Position("", 1, 1)))

    def _in_file(self, position: Position) -> Position:
        if self.start is None:
            return Position(f"{self.around}{self.what}", position.line, position.column)
        if not self.is_exact:
            return self.start
        shift = self.start.column - 1 if position.line == 1 else 0
        return Position(self.start.source, self.start.line + position.line - 1, position.column + shift)


class Scope(Struct, frozen=True):
    """The source of an expression, and the names that are bound in it."""

    source: Source
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    """The functions being compiled, outermost first."""
    is_closed: bool = False
    """True where only bound names are seen, as in the lambdas of tensor functions."""

    def fail(self, node: RankNode, message: str) -> NoReturn:
        raise self.source.error(node, message)

    def fail_for_size(self, node: RankNode, depth: int, most_nodes: int) -> NoReturn:
        """Says which limit an expression is beyond, its functions put in their places."""
        if depth > limits.RANK_EXPRESSION_DEPTH:
            most = f"nested deeper than {limits.RANK_EXPRESSION_DEPTH} levels"
        else:
            most = f"larger than {most_nodes} operations"
        self.fail(node, f"the expression, with the functions that it calls in their places, is {most}")

    def binding(self, node: RankNode) -> Binding | None:
        """The binding of `node`, if it is a bound name; else None."""
        if isinstance(node, Reference) and not node.arguments and not node.output:
            return self.bindings.get(node.name)
        return None


class Binding(Struct):
    """An argument with the scope it was written in; its type and value once they are known.

    Without a node it is a name that has a type only: a parameter of a lambda, or of a function that nobody calls.
    """

    node: RankNode | None = None
    scope: Scope | None = None
    type: TensorType | None = None
    is_typed: bool = False
    value: Any = None
    """The value that it was compiled to: a `tensor_graph.Value`."""
    text: str | None = None


def function_source(name: str, function: Function, around: str) -> Source:
    return Source(function.expression, f"function {name!r}", function.expression_position, around)


def resolve(node: RankNode, scope: Scope) -> tuple[RankNode, Scope] | None:
    """Follows bound names to the argument that they stand for, with its scope; None for a name that has only a type."""
    while binding := scope.binding(node):
        if binding.node is None or binding.scope is None:
            return None
        node, scope = binding.node, binding.scope
    return node, scope


def argument_text(node: RankNode, scope: Scope) -> str | None:
    """The text of an argument of a feature: bound names are replaced, quotes are taken off. None: it is not known.

    Raises LanguageError for a text that grew too long, as it may by functions that double it.
    """
    binding = scope.binding(node)
    if binding is not None:
        if binding.text is None and binding.node is not None and binding.scope is not None:
            binding.text = argument_text(binding.node, binding.scope)
        return binding.text
    text = _text(node, scope)
    if text is not None and len(text) > limits.RANK_ARGUMENT_CHARACTERS:
        scope.fail(node, f"an argument has more than {limits.RANK_ARGUMENT_CHARACTERS} characters")
    return text


def _text(node: RankNode, scope: Scope) -> str | None:
    if isinstance(node, String):
        return node.value
    if isinstance(node, Named):
        value = argument_text(node.value, scope)
        return None if value is None else f"{node.name}:{value}"
    if isinstance(node, Reference) and node.arguments:
        parts = [argument_text(argument, scope) for argument in node.arguments]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return f"{node.name}({','.join(known)}){'.' + node.output if node.output else ''}"
    return str(node)
