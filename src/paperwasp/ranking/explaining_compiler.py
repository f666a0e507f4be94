"""Compiles an expression once more, and notes for each node of its text what it is compiled to.

Its values are those of the programs that rank: the same operations on the same features and nodes. What they are for a
hit is what the hit was ranked by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from threading import Lock
from typing import Final

from paperwasp import limits
from paperwasp.ranking.compiler import ExpressionCompiler
from paperwasp.ranking.explanation import Explained, Explanation
from paperwasp.ranking.program import Feature
from paperwasp.ranking.scope import Binding, Scope, Source, argument_text
from paperwasp.ranking.tensor_graph import Value
from paperwasp.ranking.tree import (
    Call,
    Generate,
    If,
    Membership,
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

_KINDS: Final[Mapping[type[RankNode], str]] = {
    Number: "constant",
    String: "text",
    Operation: "operation",
    Prefix: "operation",
    Call: "call",
    If: "if",
    Membership: "in",
    Switch: "switch",
    Reference: "reference",
    TensorCall: "call",
    OfType: "tensor",
    Generate: "tensor",
    TensorLiteral: "tensor",
    Slice: "slice",
}
_TEXT_NODES: Final = limits.EXPLAINED_TEXT_CHARACTERS // 2
"""An expression with more nodes is too long to be shown whole."""


class ExplainingCompiler(ExpressionCompiler):
    """Compiles one expression: `explain`. Values within functions without a name have none for a hit, and are left
    out."""

    _nodes: list[Explained]
    _open: list[tuple[RankNode, Explained | None]]
    """The children so far of the node that is being compiled; None: one that is left out."""
    _kind: str
    """The kind of the reference that is being compiled, once it is known."""
    _reached: Feature | None

    def explain(self, source: Source) -> Explanation:
        """Explains an expression that has been compiled by a compiler of the same graph."""
        self._nodes = []
        self._open = []
        self._kind = ""
        self._reached = None
        self._expansions: dict[str, list[tuple[RankNode, Explained | None]]] = {}
        self._bound: dict[int, tuple[Binding, list[tuple[RankNode, Explained | None]]]] = {}
        self.compile(source)
        return Explanation(tuple(self._nodes), self.builder)

    def value(self, node: RankNode, scope: Scope) -> Value:
        if self.is_within_lambda:
            value = super().value(node, scope)
            self._kind, self._reached = "", None
            return value
        around, self._open = self._open, []
        binding = scope.binding(node)
        is_known = binding is not None and binding.value is not None
        value = super().value(node, scope)
        kind, self._kind = self._kind or _KINDS[type(node)], ""
        feature, self._reached = self._reached, None
        if binding is not None:
            kind = "argument"
            if is_known:
                self._open = self._bound.get(id(binding), (binding, []))[1]
            self._bound[id(binding)] = (binding, self._open)
        children, self._open = self._open, around
        around.append((node, self._add(node, scope, value, kind, feature, children)))
        return value

    def _add(
        self,
        node: RankNode,
        scope: Scope,
        value: Value,
        kind: str,
        feature: Feature | None,
        below: list[tuple[RankNode, Explained | None]],
    ) -> Explained | None:
        # The root is always added, so that there is one.
        if len(self._nodes) >= limits.EXPLAINED_PLAN_NODES and self._depth:
            return None
        known: dict[int, Explained | None] = {id(inner): child for inner, child in below}
        ordered = {id(inner): inner for inner in node.children() if id(inner) in known} | {
            id(inner): inner for inner, _ in below
        }
        ordered_children = [known[key] for key in ordered]
        children = tuple(child for child in ordered_children if child is not None)
        explained = Explained(
            number=len(self._nodes),
            kind=kind,
            text=_text(node, scope.source),
            value=value,
            operator=_operator(node),
            children=children,
            choices=self._choices(node, children) if len(children) == len(ordered_children) else (),
            feature=feature,
            is_cut=len(children) < len(ordered_children),
        )
        self._nodes.append(explained)
        return explained

    def _choices(self, node: RankNode, children: tuple[Explained, ...]) -> tuple[tuple[int | None, int], ...]:
        """Return the conditions of the children. Their values are made again, and are those of the program."""
        if isinstance(node, If):
            return ((self._as_number(children[0].value), 1), (None, 2))
        if not isinstance(node, Switch):
            return ()
        sought = self._as_number(children[0].value)
        cases = [
            (self.builder.apply("equal", sought, self._as_number(children[place].value)), place + 1)
            for place in range(1, len(children) - 1, 2)
        ]
        return (*cases, (None, len(children) - 1))

    # What a reference turns out to be

    def _function(self, node: Reference, name: str, arguments: tuple[RankNode, ...], scope: Scope) -> Value:
        value = super()._function(node, name, arguments, scope)
        self._kind = "function"
        if not arguments and not self.is_within_lambda:
            self._open = self._expansions.setdefault(name, self._open)
        return value

    def _constant(self, node: Reference, name: str, scope: Scope) -> Value:
        value = super()._constant(node, name, scope)
        self._kind = "constant"
        return value

    def _foreach(self, node: Reference, scope: Scope) -> Value:
        value = super()._foreach(node, scope)
        self._kind = "foreach"
        return value

    def _model(self, node: Reference, scope: Scope) -> Value:
        value = super()._model(node, scope)
        self._kind = "model"
        return value

    def _ranking_expression(self, node: Reference, scope: Scope) -> Value:
        value = super()._ranking_expression(node, scope)
        self._kind = "function"
        return value

    def _normalizer(self, node: Reference, scope: Scope) -> int:
        value = super()._normalizer(node, scope)
        self._kind = "normalizer"
        return value

    def _feature(self, node: Reference, scope: Scope) -> Value:
        value = super()._feature(node, scope)
        self._kind = "input" if node.name == "query" else "feature"
        arguments = tuple(argument_text(argument, scope) or "" for argument in node.arguments)
        self._reached = self._catalog.bind(node.name, arguments, node.output)
        return value


def _operator(node: RankNode) -> str:
    """The operators between the children of a node, or one of them if they are all the same; else its function."""
    match node:
        case Operation():
            return " ".join(dict.fromkeys(node.operators) if len(set(node.operators)) == 1 else node.operators)
        case Prefix():
            return node.operator
        case Call() | TensorCall():
            return node.function
    return ""


def _text(node: RankNode, source: Source) -> str:
    """The text of a node; of a long one its beginning."""
    most = limits.EXPLAINED_TEXT_CHARACTERS
    if next(islice(node.walk(), _TEXT_NODES, None), None) is None:
        text = str(node)
    else:
        text = " ".join(source.text[node.start : node.start + 2 * most].split()) + " " * most
    return text if len(text) <= most else text[:most].rstrip() + " …"


class LazyExplanations(Mapping[str, Explanation]):
    """The explanations of the expressions of a profile, by phase: each is made when it is first asked for. Until then
    nothing is kept for them.

    `begin` compiles the profile once more, and answers what makes a compiler for one phase.
    """

    def __init__(self, sources: Mapping[str, Source], begin: Callable[[], Callable[[], ExplainingCompiler]]) -> None:
        self._sources = sources
        self._begin = begin
        self._compiler: Callable[[], ExplainingCompiler] | None = None
        self._made: dict[str, Explanation] = {}
        self._lock = Lock()

    def __getitem__(self, phase: str) -> Explanation:
        """Raises LanguageError for an expression that is too deep."""
        with self._lock:
            if phase not in self._made:
                self._compiler = self._compiler or self._begin()
                self._made[phase] = self._compiler().explain(self._sources[phase])
            return self._made[phase]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)
