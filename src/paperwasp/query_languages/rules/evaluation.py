"""Evaluating a rule base over a query: which rules match where, in which order, and for how long.

Rules are evaluated in their order; each over and over again, from the start of the query on, until it matches nowhere
any more. A rule that adds does not match the same words twice, and one that replaces not those that it produced, unless
the query has become shorter.
Vespa: https://docs.vespa.ai/en/linguistics/query-rewriting.html#rule-bases
Differs: a rule that refers to terms that were not matched does not fire, where Vespa fails the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.errors import InvalidQuery
from paperwasp.query_languages.rules.conditions import (
    Choice,
    Comparison,
    Condition,
    Ellipsis,
    Form,
    Forms,
    InPhrase,
    Match,
    MatchState,
    Named,
    Scene,
    Sequence,
    Steps,
    form_of,
    matches_of,
)
from paperwasp.query_languages.rules.producing import NotProducible, produce
from paperwasp.query_languages.rules.rule_base import Rule, RuleBase
from paperwasp.query_languages.rules.tree import Leaf, described, item_of, leaves_of, root_of
from paperwasp.search.operators.item import Item

_TRANSFORMED, _MATCHED, _TRIED = 1, 2, 3
"""The levels from which on the trace tells what was done to the query, which rules match, and which are tried."""
_LEAST_MATCHES = 15
_MATCHES_PER_TERM = 3


class Rewriting(Struct):
    """A query that rules have rewritten."""

    tree: Item
    """Not canonical where rules fired."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The parameters that rules set."""
    trace: list[str] = field(default_factory=list)
    fired: bool = False


def rewrite(
    base: RuleBase, tree: Item, parameters: Mapping[str, str], joined: str = "and", trace_level: int = 0
) -> Rewriting:
    """Rewrite a query with these parameters by the rules of `base`.

    `joined` is the operator between the terms of the query: and, or, weakAnd. Errors: InvalidQuery when a rule goes on
    matching, or all take more steps or terms than a query may.
    """
    evaluation = _Evaluation(base, tree, parameters, joined, trace_level)
    evaluation.run()
    left = item_of(evaluation.root)
    if left is None:
        raise InvalidQuery(f"No query: the rule base '{base.name}' leaves nothing of it")
    return Rewriting(left if evaluation.fired else tree, evaluation.produced, evaluation.messages, evaluation.fired)


class _Evaluation:
    def __init__(
        self, base: RuleBase, tree: Item, parameters: Mapping[str, str], joined: str, trace_level: int
    ) -> None:
        self.base = base
        self.root = root_of(tree)
        self.parameters = dict(parameters)
        self.produced: dict[str, str] = {}
        self.joined = joined
        self.trace_level = trace_level
        self.messages: list[str] = []
        self.fired = False
        self._steps = Steps()
        self._matched: set[tuple[Rule, tuple[tuple[str | None, str, str], ...]]] = set()
        self._size_before = 0
        self._look()

    def _look(self) -> None:
        """Read the terms of the query as it is now."""
        self._leaves: list[Leaf] = list(leaves_of(self.root))
        if len(self._leaves) > limits.QUERY_ITEMS:
            raise InvalidQuery(
                f"The rule base '{self.base.name}' makes {len(self._leaves)} terms of the query; "
                f"at most {limits.QUERY_ITEMS}"
            )
        self._steps.take(len(self._leaves))
        self._forms: set[Form] = set()
        for speech in self.base.speeches:
            self._forms.update((speech, form_of(leaf, speech) or "") for leaf in self._leaves)

    def run(self) -> None:
        if self.trace_level >= _MATCHED:
            self._tell(_MATCHED, f"Evaluating query '{described(self.root)}':")
        for rule, begins in zip(self.base.rules, self.base.begins, strict=True):
            self._size_before = len(self._leaves)
            if begins is None or self.trace_level >= _MATCHED or not begins.isdisjoint(self._forms):
                self._everywhere(rule, begins)

    def _everywhere(self, rule: Rule, begins: Forms) -> None:
        """Evaluate a rule from all terms on, until it matches nowhere. One that removes goes backwards."""
        most = max(_LEAST_MATCHES, _MATCHES_PER_TERM * len(self._leaves))
        count = 0
        position = self._start(rule)
        while 0 <= position < len(self._leaves):
            if not self._is_begun(begins, position) or not self._at(rule, position):
                position += -1 if rule.removes else 1
                continue
            count += 1
            self._size_before = len(self._leaves)
            self._look()
            position = self._start(rule)
            if _is_loop(rule):
                return
            if count > most + 1:
                raise InvalidQuery(
                    f"Rule '{rule}' of the rule base '{self.base.name}' has matched '{described(self.root)[:1000]}' "
                    f"{most} times, aborting"
                )

    def _start(self, rule: Rule) -> int:
        return len(self._leaves) - 1 if rule.removes else 0

    def _is_begun(self, begins: Forms, position: int) -> bool:
        """Tell whether the term here may be the first of a match."""
        self._steps.take()
        if begins is None or self.trace_level >= _MATCHED:
            return True
        leaf = self._leaves[position]
        return any((speech, form_of(leaf, speech)) in begins for speech in self.base.speeches)

    def _at(self, rule: Rule, position: int) -> bool:
        """Match the rule from this term on; True where it fired."""
        if self.trace_level >= _TRIED:
            where = self._leaves[position].written
            self._tell(_TRIED, f"   Evaluating rule '{rule}' on '{described(self.root)}' at '{where}':")
        scene = Scene(
            self._leaves, self.parameters, self.base.conditions, self.base.choices, rule.references, self._steps
        )
        state = next(rule.condition.ends(MatchState(position), scene), None)
        if state is None:
            self._tell(_MATCHED, "   Did not match rule '{}' at {}", rule, position)
            return False
        matches = matches_of(state)
        key = rule, tuple((match.name, match.leaf.written, match.leaf.index) for match in matches)
        if key in self._matched and self._is_repeated(rule, matches):
            self._tell(_MATCHED, "   Ignoring repeated match of '{}'", rule)
            return False
        self._tell(_MATCHED, "   Matched rule '{}' at {}", rule, position)
        self._matched.add(key)
        return self._produce(rule, matches)

    def _is_repeated(self, rule: Rule, matches: list[Match]) -> bool:
        """Tell whether a match of the same words comes from what the rule did with them before."""
        if self._size_before > len(self._leaves):
            return False
        return not rule.is_replacing or any(match.leaf.maker is rule for match in matches)

    def _produce(self, rule: Rule, matches: list[Match]) -> bool:
        before = described(self.root) if self.trace_level >= _TRANSFORMED else ""
        try:
            found = produce(rule, matches, self.root, self.base.conditions, self.joined)
        except NotProducible:
            self._tell(_MATCHED, "   '{}' produces nothing: what it refers to was not matched", rule)
            return False
        others = set(map(id, self._leaves)) - {id(match.leaf) for match in matches}
        for leaf in leaves_of(self.root):
            if id(leaf) not in others:
                leaf.maker = rule
        self.fired = True
        self.produced |= found
        self.parameters |= found
        if self.trace_level >= _TRANSFORMED:
            after = described(self.root)
            self._tell(_TRANSFORMED, f"Transforming '{before}' to '{after}' since '{rule}' matched")
        return True

    def _tell(self, level: int, message: str, *about: object) -> None:
        if level <= self.trace_level and len(self.messages) < limits.RULE_TRACE_MESSAGES:
            self.messages.append(message.format(*about) if about else message)


def _is_loop(rule: Rule) -> bool:
    """Tell whether it is known that the rule matches what it produces: any query matches where a part is `...`."""
    return rule.produces_all or any(isinstance(part, Ellipsis) for part in _parts(rule.condition))


def _parts(condition: Condition) -> Iterator[Condition]:
    while isinstance(condition, Named):
        (condition,) = condition.parts
    yield condition
    if isinstance(condition, Choice | Sequence | Comparison | InPhrase):
        for part in condition.inside():
            yield from _parts(part)
