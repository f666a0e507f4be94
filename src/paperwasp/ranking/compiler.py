"""From the tree of an expression to values of a program: functions are put in their places, names are resolved.

Types have been inferred before (`ranking.inference`): only numbers arrive here, and names mean what they meant there.
An argument of a function is worked where it is used, so that it may also stand for the name of a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final, Protocol

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.ranking.global_phase import DEFAULT_K, NORMALIZERS, Normalizer
from paperwasp.ranking.program import Feature, Program, ProgramBuilder
from paperwasp.ranking.scope import Binding, FunctionSource, Scope, Source, argument_text, function_source
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


class ExpressionCompiler:
    """Compiles expressions of one profile into one builder, so that they share values."""

    def __init__(
        self,
        catalog: FeatureCatalog,
        functions: Mapping[str, FunctionSource],
        constants: Mapping[str, float],
        around: str = "",
    ) -> None:
        self.builder = ProgramBuilder()
        self._catalog = catalog
        self._functions = functions
        self._constants = constants
        self._around = around
        self._whole_functions: dict[str, int] = {}
        self._depth = 0
        self._visits = 0

    def compile(self, source: Source) -> int:
        """The value of an expression."""
        self._depth = self._visits = 0
        try:
            return self.value(source.parse(), Scope(source))
        except RecursionError:
            raise LanguageError(f"{source.what}: nested too deeply", source.position(0)) from None

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
        scope.fail(node, f"not executed yet: {node}")

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
        if binding := scope.binding(node):
            if binding.value is None:
                assert binding.node is not None and binding.scope is not None
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
        if node.name in NORMALIZERS:
            return self._normalizer(node, scope)
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
        source = function_source(name, function, self._around)
        number = self.value(source.parse(), Scope(source, bound, (*scope.calls, name)))
        if not arguments:
            self._whole_functions[name] = number
        return number

    def _named_constant(self, node: Reference, scope: Scope) -> int:
        name = argument_text(node.arguments[0], scope) or ""
        if name not in self._constants:
            scope.fail(node, f"no constant {name!r}")
        return self.builder.constant(self._constants[name])

    def _ranking_expression(self, node: Reference, scope: Scope) -> int:
        """The feature rankingExpression: of a function by name, or of an expression in quotes."""
        argument = node.arguments[0]
        if isinstance(argument, String):
            source = scope.source.within(node, argument.value)
            return self.value(source.parse(), Scope(source, scope.bindings, scope.calls))
        name = argument_text(argument, scope) or ""
        if name not in self._functions:
            scope.fail(node, f"no function {name!r}")
        return self._function(node, name, (), scope)

    def _normalizer(self, node: Reference, scope: Scope) -> int:
        """A feature of all hits together, of the global phase."""
        if node.name == "reciprocal_rank_fusion":
            ranks = [self._reciprocal_rank(node, argument, DEFAULT_K, scope) for argument in node.arguments]
            return reduce(lambda left, right: self.builder.apply("add", left, right), ranks)
        first, *more = node.arguments
        if node.name == "reciprocal_rank":
            k = float(argument_text(more[0], scope) or "") if more else DEFAULT_K
            return self._reciprocal_rank(node, first, k, scope)
        return self.builder.feature(Normalizer.linear(*self._normalized(node, first, scope)))

    def _reciprocal_rank(self, node: Node, argument: Node, k: float, scope: Scope) -> int:
        return self.builder.feature(Normalizer.reciprocal(*self._normalized(node, argument, scope), k))

    def _normalized(self, node: Node, argument: Node, scope: Scope) -> tuple[int, Program]:
        """The value that is normalized, and the program that computes it."""
        number = self.value(argument, scope)
        program = self.builder.program(number)
        if any(isinstance(feature, Normalizer) for feature in program.features):
            scope.fail(node, "what is normalized cannot be made of what is normalized")
        return number, program

    def _feature(self, node: Reference, scope: Scope) -> int:
        arguments = tuple(argument_text(argument, scope) or "" for argument in node.arguments)
        try:
            return self.builder.feature(self._catalog.bind(node.name, arguments, node.output))
        except LanguageError as error:
            if error.position is not None:
                raise
            scope.fail(node, error.bare_message)
