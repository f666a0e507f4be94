"""From the tree of an expression to values: functions are put in their places, names are resolved.

A value is a number of a scalar program, or a node of tensors (`ranking.tensor_graph`). Types have been inferred
before (`ranking.type_inference`), and names mean what they meant there. An argument of a function is compiled where
it is used, so that it may also stand for the name of a field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final, Protocol

from paperwasp import limits
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType, generalized
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import LanguageError
from paperwasp.ranking.expression import as_reduction
from paperwasp.ranking.foreach import Folding, arguments_of
from paperwasp.ranking.global_phase import DEFAULT_K, NORMALIZERS, Normalizer
from paperwasp.ranking.model_compiler import NO_MODELS, ModelCompiler, Models
from paperwasp.ranking.names import Description
from paperwasp.ranking.program import Feature, Program, ProgramBuilder
from paperwasp.ranking.scope import Binding, Scope, Source, argument_text, function_source
from paperwasp.ranking.tensor_compiler import TensorCompiler
from paperwasp.ranking.tensor_graph import RankValue, TensorGraph, Value
from paperwasp.ranking.tensor_run import TensorNode
from paperwasp.ranking.text_hash import text_hash
from paperwasp.ranking.tree import (
    Call,
    Generate,
    If,
    Membership,
    Named,
    Number,
    OfType,
    Operation,
    Prefix,
    RankNode,
    Reference,
    Slice,
    String,
    Switch,
    TensorCall,
    TensorLiteral,
)
from paperwasp.schema.model import Function

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

    def describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        """Describes a feature. Raises LanguageError (without position) if there can be no such feature."""

    def each(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """The features that foreach(arguments) goes over."""

    def bind(self, name: str, arguments: tuple[str, ...], output: str) -> Feature:
        """The feature `name(arguments).output`; raises LanguageError (without position) for what cannot be."""


Constants = Mapping[str, Callable[[], float | Tensor]]
"""By name: what gives the value, which may have to be read."""


class ExpressionCompiler:
    """Compiles expressions of one profile into one builder and one graph, so that they share values."""

    def __init__(
        self,
        catalog: FeatureCatalog,
        functions: Mapping[str, Function],
        constants: Constants,
        around: str = "",
        graph: TensorGraph | None = None,
        models: Models = NO_MODELS,
    ) -> None:
        """`graph`: what has been compiled before, to share its values."""
        self.graph = graph or TensorGraph(ProgramBuilder(), Labels())
        self.builder = self.graph.builder
        self._tensors = TensorCompiler(self)
        self._models = ModelCompiler(self.graph, self._tensors, models, functions)
        self._catalog = catalog
        self._functions = functions
        self._constants = constants
        self._around = around
        self._whole_functions: dict[str, Value] = {}
        self._depth = 0
        self._visits = 0
        self.most_visits = limits.RANK_PROGRAM_OPERATIONS

    def compile(self, source: Source) -> Value:
        """Compile an expression to its value."""
        self._depth = self._visits = 0
        try:
            return self.value(source.parse(), Scope(source))
        except RecursionError:
            raise LanguageError(f"{source.what}: nested too deeply", source.position(0)) from None

    def runnable(self, source: Source) -> RankValue:
        """Compiles an expression to what computes it: a program for a number, a node for a tensor."""
        value = self.compile(source)
        return value if isinstance(value, TensorNode) else self.builder.program(value)

    @property
    def is_within_lambda(self) -> bool:
        """True where the expression compiled now is computed for cells, not for hits."""
        return self._tensors.is_within_lambda

    def value(self, node: RankNode, scope: Scope) -> Value:
        """Compile `node` to its number in the builder, or to a tensor."""
        self._visits += 1
        self._depth += 1
        if self._depth > limits.RANK_EXPRESSION_DEPTH or self._visits > self.most_visits:
            scope.fail_for_size(node, self._depth, self.most_visits)
        value = _RULES[type(node)](self, node, scope)
        self._depth -= 1
        return value

    def number(self, node: RankNode, scope: Scope) -> int:
        """Compile `node` where Vespa takes numbers: of a tensor the sum of its cells."""
        return self._as_number(self.value(node, scope))

    def _as_number(self, value: Value) -> int:
        return value if isinstance(value, int) else self.graph.scalar(self.graph.reduce(value, "sum", (), NUMBER))

    def _apply(self, operation: str, *values: Value) -> Value:
        """An operation on numbers, or cell by cell."""
        numbers = [value for value in values if isinstance(value, int)]
        if len(numbers) == len(values):
            return self.builder.apply(operation, *numbers)
        return self._tensors.combine(operation, *map(self._tensors.as_node, values))

    # Numbers and operators

    def _number(self, node: Number, scope: Scope) -> Value:
        return self.builder.constant(node.value)

    def _string(self, node: String, scope: Scope) -> Value:
        return self.builder.constant(text_hash(node.value))

    def _operation(self, node: Operation, scope: Scope) -> Value:
        left = self.value(node.operands[0], scope)
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            left = self._apply(_BINARY[operator], left, self.value(operand, scope))
        return left

    def _prefix(self, node: Prefix, scope: Scope) -> Value:
        return self._apply(_PREFIX[node.operator], self.value(node.operand, scope))

    def _call(self, node: Call, scope: Scope) -> Value:
        first = self.value(node.arguments[0], scope)
        if node.function in ("max", "min") and isinstance(first, TensorNode):
            second = node.arguments[1]
            if self._is_dimension(second, first.type, scope) and (reduction := as_reduction(node)):
                return self._tensors.call(reduction, scope)
        others = [self.value(argument, scope) for argument in node.arguments[1:]]
        return self._apply(_CALLS.get(node.function, node.function), first, *others)

    def _is_dimension(self, node: RankNode, type_: TensorType, scope: Scope) -> bool:
        """Tell whether `node` is nothing but the name of a dimension of the type."""
        if not isinstance(node, Reference) or node.arguments or node.output or scope.binding(node):
            return False
        if node.name in self._functions or node.name in self._constants:
            return False
        return any(d.name == node.name for d in type_.dimensions)

    def _if(self, node: If, scope: Scope) -> Value:
        condition = self.number(node.condition, scope)
        return self._select(condition, self.value(node.if_true, scope), self.value(node.if_false, scope))

    def _select(self, condition: int, if_true: Value, if_false: Value) -> Value:
        if isinstance(if_true, int) and isinstance(if_false, int):
            return self.builder.apply("select", condition, if_true, if_false)
        sides = [self._tensors.as_node(side) for side in (if_true, if_false)]
        type_ = generalized(sides[0].type, sides[1].type)
        assert type_ is not None
        return self.graph.choose(condition, sides[0], sides[1], type_)

    def _membership(self, node: Membership, scope: Scope) -> Value:
        sought = self.value(node.value, scope)
        found = self._apply("equal", sought, self.value(node.choices[0], scope))
        for choice in node.choices[1:]:
            found = self._apply("or", found, self._apply("equal", sought, self.value(choice, scope)))
        return found

    def _switch(self, node: Switch, scope: Scope) -> Value:
        sought = self.number(node.discriminant, scope)
        result = self.value(node.default, scope)
        for case, outcome in reversed(node.cases):
            condition = self.builder.apply("equal", sought, self.number(case, scope))
            result = self._select(condition, self.value(outcome, scope), result)
        return result

    def _refuse_named(self, node: Named, scope: Scope) -> Value:
        scope.fail(node, f"functions have no named parameters such as {node.name!r}")

    # Names

    def _reference(self, node: Reference, scope: Scope) -> Value:
        is_plain = not node.arguments and not node.output
        if binding := scope.binding(node):
            if binding.value is None:
                assert binding.node is not None and binding.scope is not None
                binding.value = self.value(binding.node, binding.scope)
            bound: Value = binding.value
            return bound
        if not node.output and node.name in self._functions:
            return self._function(node, node.name, node.arguments, scope)
        if is_plain and node.name in self._constants:
            return self._constant(node, node.name, scope)
        if node.name == "constant" and len(node.arguments) == 1:
            return self._constant(node, argument_text(node.arguments[0], scope) or "", scope)
        if node.name == "rankingExpression" and len(node.arguments) == 1:
            return self._ranking_expression(node, scope)
        if node.name == "foreach":
            return self._foreach(node, scope)
        if self._models.compiles(node):
            return self._model(node, scope)
        if node.name in NORMALIZERS:
            return self._normalizer(node, scope)
        return self._feature(node, scope)

    def _function(self, node: Reference, name: str, arguments: tuple[RankNode, ...], scope: Scope) -> Value:
        if not arguments and name in self._whole_functions:
            return self._whole_functions[name]
        if name in scope.calls:
            scope.fail(node, f"function {name!r} calls itself: {' → '.join((*scope.calls, name))}")
        function = self._functions[name]
        if len(arguments) != len(function.parameters):
            scope.fail(node, f"function {name!r} takes {len(function.parameters)} argument(s), not {len(arguments)}")
        bound = {p: Binding(argument, scope) for p, argument in zip(function.parameters, arguments, strict=True)}
        source = function_source(name, function, self._around)
        value = self.value(source.parse(), Scope(source, bound, (*scope.calls, name)))
        if not arguments:
            self._whole_functions[name] = value
        return value

    def _constant(self, node: Reference, name: str, scope: Scope) -> Value:
        if name not in self._constants:
            scope.fail(node, f"no constant {name!r}")
        try:
            constant = self._constants[name]()
        except LanguageError as error:
            if error.position is not None:
                raise
            scope.fail(node, error.bare_message)
        if not isinstance(constant, Tensor):
            return self.builder.constant(constant)
        batch = TensorBatch.single(constant, self.graph.labels)
        return self._tensors.as_value(self.graph.constant(("constant", name), batch))

    def _foreach(self, node: Reference, scope: Scope) -> Value:
        """The feature foreach: an operation on the values of a feature for each term, field or attribute."""
        arguments = arguments_of(node, scope) or ()
        fold = Folding.of(arguments[3], arguments[4], self.builder)
        for text in self._catalog.each(arguments):
            source = scope.source.within(node, text)
            fold.add(self.number(source.parse(), Scope(source, scope.bindings, scope.calls)))
        return fold.result()

    def _model(self, node: Reference, scope: Scope) -> Value:
        try:
            return self._models.value(node, scope)
        except LanguageError as error:
            if error.position is not None:
                raise
            scope.fail(node, error.bare_message)

    def _ranking_expression(self, node: Reference, scope: Scope) -> Value:
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

    def _reciprocal_rank(self, node: RankNode, argument: RankNode, k: float, scope: Scope) -> int:
        return self.builder.feature(Normalizer.reciprocal(*self._normalized(node, argument, scope), k))

    def _normalized(self, node: RankNode, argument: RankNode, scope: Scope) -> tuple[int, Program]:
        """The value that is normalized, and the program that computes it."""
        number = self.number(argument, scope)
        program = self.builder.program(number)
        if any(isinstance(feature, Normalizer) for feature in program.features):
            scope.fail(node, "what is normalized cannot be made of what is normalized")
        return number, program

    def _feature(self, node: Reference, scope: Scope) -> Value:
        arguments = tuple(argument_text(argument, scope) or "" for argument in node.arguments)
        try:
            described = self._catalog.describe(node.name, arguments, node.output)
            feature = self._catalog.bind(node.name, arguments, node.output)
        except LanguageError as error:
            if error.position is not None:
                raise
            scope.fail(node, error.bare_message)
        type_ = described.type
        if type_ is None or type_.is_number:
            return self.builder.feature(feature)
        return self._tensors.feature(feature, type_)


_RULES: Final[Mapping[type[RankNode], Callable[[ExpressionCompiler, Any, Scope], Value]]] = {
    Number: ExpressionCompiler._number,
    String: ExpressionCompiler._string,
    Operation: ExpressionCompiler._operation,
    Prefix: ExpressionCompiler._prefix,
    Call: ExpressionCompiler._call,
    If: ExpressionCompiler._if,
    Membership: ExpressionCompiler._membership,
    Switch: ExpressionCompiler._switch,
    Named: ExpressionCompiler._refuse_named,
    Reference: ExpressionCompiler._reference,
    TensorCall: lambda compiler, node, scope: compiler._tensors.call(node, scope),
    OfType: lambda compiler, node, scope: compiler._tensors.of_type(node),
    Generate: lambda compiler, node, scope: compiler._tensors.generate(node, scope),
    TensorLiteral: lambda compiler, node, scope: compiler._tensors.literal(node, scope),
    Slice: lambda compiler, node, scope: compiler._tensors.slice(node, scope),
}
