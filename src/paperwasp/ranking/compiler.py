"""From the tree of an expression to values of a program: functions are put in their places, names are resolved.

A name is, in this order: a parameter of the function around it, a function of the profile, a constant, a rank feature.
An argument of a function is worked where it is used, so that it may also stand for the name of a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn, Protocol

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.parsing.tokens import position_of
from paperwasp.ranking.expression import parse_expression
from paperwasp.ranking.program import Feature, ProgramBuilder
from paperwasp.ranking.tree import Call, If, Membership, Node, Number, Operation, Prefix, Reference, String, Switch

_BINARY: Final = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "modulo",
    "^": "power",
    "==": "equal",
    "!=": "notEqual",
    "~=": "approximatelyEqual",
    "<": "less",
    "<=": "lessEqual",
    ">": "greater",
    ">=": "greaterEqual",
    "&&": "and",
    "||": "or",
}
_PREFIX: Final = {"-": "negate", "!": "not"}
_CALLS: Final = {"abs": "fabs", "pow": "power", "fmod": "modulo"}


class FeatureCatalog(Protocol):
    """The rank features that exist: what checks a reference against a schema, and binds it."""

    def bind(self, name: str, arguments: tuple[str, ...], output: str) -> Feature:
        """The feature `name(arguments).output`; raises LanguageError (without position) for what cannot be."""


class FunctionSource(Protocol):
    """A function of a rank profile: its parameters and the text of its body."""

    @property
    def parameters(self) -> tuple[str, ...]: ...

    @property
    def expression(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression stands: its text, what errors call it, and what its parameters are bound to."""

    text: str
    source: str
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    """The functions being worked, outermost first."""

    def fail(self, node: Node, message: str) -> NoReturn:
        raise LanguageError(message, position_of(self.text, node.start, self.source))


@dataclass(slots=True)
class Binding:
    """An argument with the scope it was written in; its value once it is known."""

    node: Node
    scope: Scope
    value: int | None = None


class ExpressionCompiler:
    """Compiles expressions of one profile into one builder, so that they share values."""

    def __init__(
        self,
        catalog: FeatureCatalog,
        functions: Mapping[str, FunctionSource],
        constants: Mapping[str, float],
        source: str = "",
    ) -> None:
        self.builder = ProgramBuilder()
        self._catalog = catalog
        self._functions = functions
        self._constants = constants
        self._source = source
        self._bodies: dict[str, Node] = {}
        self._whole_functions: dict[str, int] = {}
        self._depth = 0
        self._visits = 0

    def compile(self, text: str, where: str) -> int:
        """The value of the expression `text`; `where` names it in errors, such as `first-phase`."""
        source = f"{self._source}{where}"
        self._depth = self._visits = 0
        return self.value(parse_expression(text, source), Scope(text, source))

    def value(self, node: Node, scope: Scope) -> int:
        """The number of the value of `node` in the builder."""
        self._visits += 1
        self._depth += 1
        if self._depth > limits.RANK_EXPRESSION_DEPTH or self._visits > limits.RANK_PROGRAM_OPERATIONS:
            scope.fail(node, "the expression with its functions is nested too deeply or too large")
        number = self._value_of(node, scope)
        self._depth -= 1
        return number

    def _value_of(self, node: Node, scope: Scope) -> int:
        match node:
            case Number():
                return self.builder.constant(node.value)
            case Reference():
                return self._reference(node, scope)
            case Operation():
                return self._operation(node, scope)
            case Prefix():
                return self.builder.apply(_PREFIX[node.operator], self.value(node.operand, scope))
            case Call():
                operation = _CALLS.get(node.function, node.function)
                return self.builder.apply(operation, *[self.value(argument, scope) for argument in node.arguments])
            case If():
                return self.builder.apply("select", *[self.value(child, scope) for child in node.children()])
            case Membership():
                return self._membership(node, scope)
            case Switch():
                return self._switch(node, scope)
            case String():
                scope.fail(node, "strings in expressions are not supported yet")
        raise AssertionError(node)

    def _operation(self, node: Operation, scope: Scope) -> int:
        left = self.value(node.operands[0], scope)
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            left = self.builder.apply(_BINARY[operator], left, self.value(operand, scope))
        return left

    def _membership(self, node: Membership, scope: Scope) -> int:
        sought = self.value(node.value, scope)
        found = self.builder.apply("equal", sought, self.value(node.choices[0], scope))
        for choice in node.choices[1:]:
            found = self.builder.apply("or", found, self.builder.apply("equal", sought, self.value(choice, scope)))
        return found

    def _switch(self, node: Switch, scope: Scope) -> int:
        sought = self.value(node.discriminant, scope)
        result = self.value(node.default, scope)
        for case, outcome in reversed(node.cases):
            condition = self.builder.apply("equal", sought, self.value(case, scope))
            result = self.builder.apply("select", condition, self.value(outcome, scope), result)
        return result

    def _reference(self, node: Reference, scope: Scope) -> int:
        is_plain = not node.arguments and not node.output
        if is_plain and (binding := scope.bindings.get(node.name)):
            if binding.value is None:
                binding.value = self.value(binding.node, binding.scope)
            return binding.value
        if not node.output and node.name in self._functions:
            return self._function(node, node.name, node.arguments, scope)
        if is_plain and node.name in self._constants:
            return self.builder.constant(self._constants[node.name])
        if node.name == "constant" and len(node.arguments) == 1:
            return self._named_constant(node, scope)
        if node.name == "rankingExpression" and len(node.arguments) == 1:
            return self._ranking_expression(node, scope)
        return self._feature(node, scope)

    def _function(self, node: Reference, name: str, arguments: tuple[Node, ...], scope: Scope) -> int:
        if not arguments and name in self._whole_functions:
            return self._whole_functions[name]
        if name in scope.calls:
            scope.fail(node, f"function {name!r} calls itself: {' → '.join((*scope.calls, name))}")
        function = self._functions[name]
        if len(arguments) != len(function.parameters):
            scope.fail(node, f"function {name!r} takes {len(function.parameters)} argument(s), not {len(arguments)}")
        bound = {p: Binding(argument, scope) for p, argument in zip(function.parameters, arguments, strict=True)}
        inner = Scope(function.expression, f"{self._source}function {name!r}", bound, (*scope.calls, name))
        if name not in self._bodies:
            self._bodies[name] = parse_expression(inner.text, inner.source)
        number = self.value(self._bodies[name], inner)
        if not arguments:
            self._whole_functions[name] = number
        return number

    def _named_constant(self, node: Reference, scope: Scope) -> int:
        name = _argument_text(node.arguments[0], scope)
        if name not in self._constants:
            scope.fail(node, f"no constant {name!r}")
        return self.builder.constant(self._constants[name])

    def _ranking_expression(self, node: Reference, scope: Scope) -> int:
        """The feature rankingExpression: of a function by name, or of an expression in quotes."""
        argument = node.arguments[0]
        if isinstance(argument, String):
            source = f"{scope.source}, {node}"
            inner = Scope(argument.value, source, scope.bindings, scope.calls)
            return self.value(parse_expression(argument.value, source), inner)
        name = _argument_text(argument, scope)
        if name not in self._functions:
            scope.fail(node, f"no function {name!r}")
        return self._function(node, name, (), scope)

    def _feature(self, node: Reference, scope: Scope) -> int:
        arguments = tuple(_argument_text(argument, scope) for argument in node.arguments)
        try:
            return self.builder.feature(self._catalog.bind(node.name, arguments, node.output))
        except LanguageError as error:
            if error.position is not None:
                raise
            scope.fail(node, error.bare_message)


def _argument_text(node: Node, scope: Scope) -> str:
    """What an argument of a feature says: a parameter is replaced by what it stands for, quotes are taken off."""
    while isinstance(node, Reference) and not node.arguments and not node.output and node.name in scope.bindings:
        binding = scope.bindings[node.name]
        node, scope = binding.node, binding.scope
    if isinstance(node, String):
        return node.value
    if isinstance(node, Reference) and node.arguments:
        arguments = ",".join(_argument_text(argument, scope) for argument in node.arguments)
        return f"{node.name}({arguments}){'.' + node.output if node.output else ''}"
    return str(node)
