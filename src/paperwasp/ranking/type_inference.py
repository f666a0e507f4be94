"""The types of ranking expressions: every name is resolved and every operation checked, tensors included.

A name is, in this order: a parameter of the function around it, a function of the profile, a constant, a rank feature.
All problems are collected; what has one is of unknown type (None), with which everything agrees, so that one mistake
is reported once. What is right but not executed yet is noted as pending.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from paperwasp import limits
from paperwasp.document.tensor import types as rules
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.errors import LanguageError
from paperwasp.ranking.expression import as_reduction
from paperwasp.ranking.foreach import arguments_of
from paperwasp.ranking.global_phase import NORMALIZERS
from paperwasp.ranking.model_types import FEATURES as SEQUENCES
from paperwasp.ranking.model_types import ONNX, TREES, FileNotAvailable, check_sequence, onnx_type, trees_type
from paperwasp.ranking.names import Names, Type, TypeCatalog, Uses
from paperwasp.ranking.scope import Binding, Scope, Source, argument_text, function_source, resolve
from paperwasp.ranking.tensor_functions import FUNCTIONS, Operands, sliced_type
from paperwasp.ranking.tree import (
    Call,
    Generate,
    If,
    Lambda,
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
    Word,
    Words,
)
from paperwasp.schema.model import Function
from paperwasp.text.parsing.tokens import did_you_mean


class _UnknownTypeError(Exception):
    """A type rule met a type that is not known."""


class TypeInference:
    """Infers the types of the expressions of one profile. `around` names the profile where places are not known."""

    def __init__(self, catalog: TypeCatalog, names: Names, around: str = "") -> None:
        self.names = names
        self._catalog = catalog
        self._around = around
        self._problems: dict[str, LanguageError] = {}
        self._uses = Uses()
        self._known_calls: dict[tuple[object, ...], tuple[Type, Uses]] = {}
        self._depth = 0
        self._visits = 0
        self._most_visits = limits.RANK_INFERENCE_NODES
        self.most_problems = limits.SCHEMA_PROBLEMS

    @property
    def problems(self) -> list[LanguageError]:
        return list(self._problems.values())

    def infer(self, source: Source, most_nodes: int = limits.RANK_INFERENCE_NODES) -> tuple[Type, Uses]:
        """The type of a whole expression, and what it uses. What is wrong is added to `problems`.

        `most_nodes`: how many nodes it may have whose types are not known from expressions before.
        """
        self._uses, self._depth = Uses(), 0
        self._most_visits = min(limits.RANK_INFERENCE_NODES, self._visits + most_nodes)
        type_: Type = None
        try:
            type_ = self.type_of(source.parse(), Scope(source))
        except LanguageError as error:
            self.add(error)
        except RecursionError:
            self.add(LanguageError(f"{source.what}: nested too deeply", source.position(0)))
        return type_, self._uses

    def check_function(self, name: str) -> None:
        """A function that may never be called: with parameters, what can be seen without their types."""
        function = self.names.functions[name]
        if not function.parameters:
            self.infer(Source(name, f"function {name!r}", None, self._around))
            return
        source = function_source(name, function, self._around)
        bindings = {parameter: Binding(is_typed=True) for parameter in function.parameters}
        self._uses, self._depth = Uses(), 0
        try:
            self.type_of(source.parse(), Scope(source, bindings, (name,)))
        except LanguageError as error:
            self.add(error)
        except RecursionError:
            self.add(LanguageError(f"{source.what}: nested too deeply", source.position(0)))

    def add(self, problem: LanguageError) -> None:
        """Adds what is wrong, unless so much is that nobody wants more."""
        if len(self._problems) < self.most_problems:
            self._problems.setdefault(str(problem), problem)

    def type_of(self, node: RankNode, scope: Scope) -> Type:
        self._visits += 1
        self._depth += 1
        if self._depth > limits.RANK_EXPRESSION_DEPTH or self._visits > self._most_visits:
            scope.fail_for_size(node, self._depth, self._most_visits)
        if len(self._problems) >= self.most_problems:
            scope.fail(node, "there are too many problems to look further")
        type_ = _RULES[type(node)](self, node, scope)
        self._uses.has_tensors |= type_ is not None and not type_.is_number
        self._depth -= 1
        return type_

    def _problem(self, node: RankNode, scope: Scope, message: str) -> None:
        self.add(scope.source.error(node, message))

    def _pending(self, what: str) -> None:
        self._uses.pending[what] = None

    def _apply_rule(self, node: RankNode, scope: Scope, rule: Callable[..., TensorType], *types: Any) -> Type:
        """The type that a rule gives for `types`; unknown where one of these is. Its ValueError becomes a problem."""
        if None in types:
            return None
        try:
            return rule(*types)
        except _UnknownTypeError:
            return None
        except ValueError as error:
            self._problem(node, scope, str(error))
            return None

    # Numbers and operators

    def _number(self, node: Number, scope: Scope) -> Type:
        return NUMBER

    def _string(self, node: String, scope: Scope) -> Type:
        return NUMBER

    def _operation(self, node: Operation, scope: Scope) -> Type:
        return self._all_joined(node, node.operands, scope)

    def _all_joined(self, node: RankNode, operands: Sequence[RankNode], scope: Scope) -> Type:
        left = self.type_of(operands[0], scope)
        for operand in operands[1:]:
            right = self.type_of(operand, scope)
            if left is not NUMBER or right is not NUMBER:
                left = self._apply_rule(node, scope, rules.joined, left, right)
        return left

    def _prefix(self, node: Prefix, scope: Scope) -> Type:
        return self._apply_rule(node, scope, rules.mapped, self.type_of(node.operand, scope))

    def _call(self, node: Call, scope: Scope) -> Type:
        if node.function in ("max", "min") and (reduction := self._as_reduction(node, scope)):
            return self.type_of(reduction, scope)
        if len(node.arguments) > 1:
            return self._all_joined(node, node.arguments, scope)
        return self._apply_rule(node, scope, rules.mapped, self.type_of(node.arguments[0], scope))

    def _as_reduction(self, node: Call, scope: Scope) -> TensorCall | None:
        """`max(t, x)` where x is nothing but a dimension of t."""
        second = node.arguments[1]
        if not isinstance(second, Reference) or second.arguments or second.output or scope.binding(second):
            return None
        if second.name in self.names.functions or second.name in self.names.constants:
            return None
        type_ = self.type_of(node.arguments[0], scope)
        dimensions = () if type_ is None else type_.dimensions
        return as_reduction(node) if any(d.name == second.name for d in dimensions) else None

    def _membership(self, node: Membership, scope: Scope) -> Type:
        for choice in node.choices:
            self.type_of(choice, scope)
        return self._apply_rule(node, scope, rules.mapped, self.type_of(node.value, scope))

    def _if(self, node: If, scope: Scope) -> Type:
        self.type_of(node.condition, scope)
        if_true, if_false = self.type_of(node.if_true, scope), self.type_of(node.if_false, scope)
        if if_true is None or if_false is None:
            return None
        type_ = if_true if if_true is if_false else rules.generalized(if_true, if_false)
        if type_ is None:
            self._problem(
                node,
                scope,
                "An if expression must produce compatible types in both alternatives, but the 'true' type is"
                f" {if_true} while the 'false' type is {if_false}",
            )
        return type_

    def _switch(self, node: Switch, scope: Scope) -> Type:
        self.type_of(node.discriminant, scope)
        types = []
        for case, result in (*node.cases, (None, node.default)):
            if case is not None:
                self.type_of(case, scope)
            types.append(self.type_of(result, scope))
        known = [type_ for type_ in types if type_ is not None]
        if len(known) < len(types):
            return None
        type_ = reduce(lambda a, b: a and rules.generalized(a, b), known[1:], known[0] if known else None)
        if type_ is None:
            listing = ", ".join(dict.fromkeys(map(str, known)))
            self._problem(node, scope, f"A switch must produce compatible types in all cases, but they are {listing}")
        return type_

    # Tensors

    def _tensor_call(self, node: TensorCall, scope: Scope) -> Type:
        types: list[Type] = []
        words: list[str] = []
        names: list[tuple[str, ...]] = []
        function: Lambda | None = None
        for argument in node.arguments:
            match argument:
                case Word():
                    words.append(argument.text)
                case Words():
                    names.append(argument.words)
                case Lambda():
                    function = argument
                case _:
                    types.append(self.type_of(argument, scope))

        def of_lambda(*parameters: Type) -> TensorType:
            assert function is not None
            type_ = self._lambda_type(function, parameters, scope)
            if type_ is None:
                raise _UnknownTypeError
            return type_

        known = tuple(type_ for type_ in types if type_ is not None)
        if len(known) < len(types):
            if function is not None:
                self._lambda_type(function, [None] * len(function.parameters), scope)
            return None
        operands = Operands(known, tuple(words), tuple(names), of_lambda)
        return self._apply_rule(node, scope, FUNCTIONS[node.function].type, operands)

    def _lambda_type(self, node: Lambda, parameters: Sequence[Type], scope: Scope) -> Type:
        bindings = {
            name: Binding(type=type_, is_typed=True) for name, type_ in zip(node.parameters, parameters, strict=True)
        }
        return self.type_of(node.body, Scope(scope.source, bindings, scope.calls, is_closed=True))

    def _of_type(self, node: OfType, scope: Scope) -> Type:
        return node.type

    def _generate(self, node: Generate, scope: Scope) -> Type:
        dimensions = {d.name: Binding(type=NUMBER, is_typed=True) for d in node.type.dimensions}
        inner = Scope(scope.source, {**scope.bindings, **dimensions}, scope.calls, scope.is_closed)
        self._must_be_number(node.body, inner, "a cell")
        return node.type

    def _literal(self, node: TensorLiteral, scope: Scope) -> Type:
        for cell in node.cells:
            if not isinstance(cell.value, Number):
                self._must_be_number(cell.value, scope, "a cell")
        return node.type

    def _slice(self, node: Slice, scope: Scope) -> Type:
        type_ = self.type_of(node.tensor, scope)
        for place in node.places:
            if place.index is not None:
                self._must_be_number(place.index, scope, "an index")
        return self._apply_rule(node, scope, lambda given: sliced_type(node, given), type_)

    def _must_be_number(self, node: RankNode, scope: Scope, what: str) -> None:
        type_ = self.type_of(node, scope)
        if type_ is not None and not type_.is_number:
            self._problem(node, scope, f"{what} is a number, not a {type_}")

    # Names

    def _refuse_named(self, node: Named, scope: Scope) -> Type:
        self._problem(node, scope, f"functions have no named parameters such as {node.name!r}")
        return None

    def _reference(self, node: Reference, scope: Scope) -> Type:
        binding = scope.binding(node)
        if binding is not None:
            return self._infer_binding(binding)
        if scope.is_closed:
            self._problem(node, scope, f"the function of a tensor function sees its parameters only, not {node}")
            return None
        if not node.output and node.name in self.names.functions:
            return self._function(node, node.name, node.arguments, scope)
        if not node.output and not node.arguments and node.name in self.names.constants:
            return self.names.constants[node.name]
        if node.arguments and (node.name in ONNX or (node.name in TREES and len(node.arguments) == 1)):
            return self._model(node, scope)
        if node.name == "foreach":
            return self._foreach(node, scope)
        special = _SPECIAL.get(node.name)
        if special is not None and len(node.arguments) == 1 and not node.output:
            return special(self, node, scope)
        return self._feature(node, scope)

    def _infer_binding(self, binding: Binding) -> Type:
        if not binding.is_typed and binding.node is not None and binding.scope is not None:
            binding.type = self.type_of(binding.node, binding.scope)
            binding.is_typed = True
        return binding.type

    def _function(self, node: Reference, name: str, arguments: tuple[RankNode, ...], scope: Scope) -> Type:
        function = self.names.functions[name]
        if name in scope.calls:
            self._problem(node, scope, f"function {name!r} calls itself: {' → '.join((*scope.calls, name))}")
            return None
        if len(arguments) != len(function.parameters):
            message = f"function {name!r} takes {len(function.parameters)} argument(s), not {len(arguments)}"
            self._problem(node, scope, message)
            return None
        bound = {p: Binding(argument, scope) for p, argument in zip(function.parameters, arguments, strict=True)}
        key = (name, *[self._key(binding) for binding in bound.values()])
        if key not in self._known_calls:
            outer, self._uses = self._uses, Uses()
            self._known_calls[key] = (self._body(name, function, bound, scope), self._uses)
            self._uses = outer
        type_, uses = self._known_calls[key]
        self._uses.add(uses)
        return type_

    def _body(self, name: str, function: Function, bound: Mapping[str, Binding], scope: Scope) -> Type:
        source = function_source(name, function, self._around)
        try:
            body = source.parse()
        except LanguageError as error:
            self.add(error)
            return None
        return self.type_of(body, Scope(source, bound, (*scope.calls, name)))

    def _key(self, binding: Binding) -> object:
        """The key of the type of a call: the text of an argument that is a name (perhaps of a field), else its type."""
        assert binding.node is not None and binding.scope is not None
        found = resolve(binding.node, binding.scope)
        if found is not None and isinstance(found[0], Reference | String | Number):
            try:
                text = argument_text(*found)
            except LanguageError:
                text = None
            if text is not None:
                return text
        return self._infer_binding(binding)

    def _query(self, node: Reference, scope: Scope) -> Type:
        name = argument_text(node.arguments[0], scope)
        if name is None:
            return None
        self._uses.features["query"] = None
        self._uses.references[f"query({name})"] = None
        if name not in self.names.inputs:
            self._uses.undeclared[name] = None
            return NUMBER
        return self.names.inputs[name] or NUMBER

    def _constant(self, node: Reference, scope: Scope) -> Type:
        name = argument_text(node.arguments[0], scope)
        if name is None:
            return None
        if name not in self.names.constants:
            self._problem(node, scope, f"no constant {name!r}{did_you_mean(name, self.names.constants)}")
            return None
        return self.names.constants[name]

    def _ranking_expression(self, node: Reference, scope: Scope) -> Type:
        """The feature rankingExpression: of a function by name, or of an expression in quotes."""
        argument = node.arguments[0]
        if isinstance(argument, String):
            source = scope.source.within(node, argument.value)
            return self.type_of(source.parse(), Scope(source, scope.bindings, scope.calls))
        name = argument_text(argument, scope)
        if name is None:
            return None
        if name not in self.names.functions:
            self._problem(node, scope, f"no function {name!r}{did_you_mean(name, self.names.functions)}")
            return None
        return self._function(node, name, (), scope)

    def _model(self, node: Reference, scope: Scope) -> Type:
        work = trees_type if node.name in TREES else onnx_type
        self._uses.references[str(node)] = None
        try:
            return work(self.names, node, scope, self.type_of)
        except FileNotAvailable:
            self._pending(f"{node}, whose file is not available")
        except LanguageError as error:
            self._add_error(node, scope, error)
        return None

    def _sequence(self, node: Reference, argument: RankNode, scope: Scope) -> None:
        try:
            check_sequence(node, argument, self.type_of(argument, scope))
        except LanguageError as error:
            self._add_error(argument, scope, error)

    def _add_error(self, node: RankNode, scope: Scope, error: LanguageError) -> None:
        """Adds a problem, at this node unless the error has a position."""
        self.add(error if error.position is not None else scope.source.error(node, error.bare_message))

    def _foreach(self, node: Reference, scope: Scope) -> Type:
        """The feature foreach: what it goes over are features, or functions without arguments."""
        if node.output not in ("", "value"):
            self._problem(node, scope, f"rank feature 'foreach' has no output {node.output!r}; it has value")
        arguments = arguments_of(node, scope)
        if arguments is None:
            return NUMBER
        try:
            features = self._catalog.each(arguments)
        except LanguageError as error:
            self._problem(node, scope, error.bare_message)
            return None
        self._uses.features["foreach"] = None
        for text in features:
            source = scope.source.within(node, text)
            self._must_be_number(source.parse(), Scope(source, scope.bindings, scope.calls), "what foreach goes over")
        return NUMBER

    def _feature(self, node: Reference, scope: Scope) -> Type:
        arguments = tuple(argument_text(argument, scope) for argument in node.arguments)
        try:
            described = self._catalog.describe(node.name, arguments, node.output)
        except LanguageError as error:
            self._problem(node, scope, error.bare_message)
            return None
        self._uses.features[node.name] = None
        if None not in arguments:
            within = f"({','.join(map(str, arguments))})" if arguments else ""
            self._uses.references[f"{node.name}{within}{'.' + node.output if node.output else ''}"] = None
        if described.pending:
            self._pending(described.pending)
        for number in described.expressions:
            if node.name in NORMALIZERS:
                self._must_be_number(node.arguments[number], scope, f"what {node.name} takes")
            elif node.name in SEQUENCES:
                self._sequence(node, node.arguments[number], scope)
            else:
                self.type_of(node.arguments[number], scope)
        return described.type


_SPECIAL: Final[Mapping[str, Callable[[TypeInference, Reference, Scope], Type]]] = {
    "query": TypeInference._query,
    "constant": TypeInference._constant,
    "rankingExpression": TypeInference._ranking_expression,
}

_RULES: Final[Mapping[type[RankNode], Callable[[TypeInference, Any, Scope], Type]]] = {
    Number: TypeInference._number,
    String: TypeInference._string,
    Operation: TypeInference._operation,
    Prefix: TypeInference._prefix,
    Call: TypeInference._call,
    Membership: TypeInference._membership,
    If: TypeInference._if,
    Switch: TypeInference._switch,
    TensorCall: TypeInference._tensor_call,
    OfType: TypeInference._of_type,
    Generate: TypeInference._generate,
    TensorLiteral: TypeInference._literal,
    Slice: TypeInference._slice,
    Named: TypeInference._refuse_named,
    Reference: TypeInference._reference,
}
