"""The syntax `advanced`: terms with operators between them, and parentheses.

`a and b`, `a or b`, `a andnot b`, `a rank b`, `a near(5) b`, `a onear(5) b`, `a equiv b`, `a weakand(100) b`, in any
case. Operators have no precedence: each takes all that stands to its left. Terms without an operator between them go
to the operator before them, or are joined by `and`.
Differs: after a closing parenthesis they are joined by `and` too, not put into what the parentheses hold.
Vespa: com.yahoo.prelude.query.parser.AdvancedParser; the type is deprecated there in favor of YQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.errors import LanguageError
from paperwasp.query.yql.simple_terms import Reader
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, RankItem
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.text.parsing.tokens import position_of

_ARGUMENT = compile_later(r"\s*\(\s*(?:([0-9]{1,9})\s*\))?")

_OPERATORS: Final[Mapping[str, Callable[[tuple[Item, ...], int], Item]]] = {
    "and": lambda children, _: AndItem(children),
    "or": lambda children, _: OrItem(children),
    "andnot": lambda children, _: NotItem(children),
    "rank": lambda children, _: RankItem(children),
    "equiv": lambda children, _: EquivItem(children),
    "near": lambda children, distance: NearItem(children, distance or 2),
    "onear": lambda children, distance: NearItem(children, distance or 2, ordered=True),
    "weakand": lambda children, hits: WeakAndItem(children, hits),
    "wand": lambda children, hits: WeakAndItem(children, hits),
}
_WITH_ARGUMENT: Final = frozenset({"near", "onear", "weakand", "wand"})


@dataclass(slots=True)
class _Group:
    """One level of the query so far: its open operator and the children of that."""

    operator: str = ""
    argument: int = 0
    children: list[Item] = field(default_factory=list)

    def item(self) -> Item | None:
        if len(self.children) < 2:
            return self.children[0] if self.children else None
        return _OPERATORS[self.operator or "and"](tuple(self.children), self.argument)

    def take(self, operator: str, argument: int) -> None:
        """Goes on with an operator; another than the open one takes what was read so far as its first child."""
        if (operator, argument) != (self.operator, self.argument) and self.operator:
            item = self.item()
            self.children = [item] if item is not None else []
        self.operator, self.argument = operator, argument


def advanced_terms(reader: Reader, depth: int = 0) -> Item | None:
    """The tree of what stands up to the end, or up to the parenthesis that closes the group of depth > 0."""
    if depth > limits.EXPRESSION_DEPTH:
        raise LanguageError(
            f"nested deeper than {limits.EXPRESSION_DEPTH} levels", position_of(reader.text, reader.at, "query")
        )
    group = _Group()
    expecting_operator = False
    while reader.skip_spaces():
        start = reader.at
        if depth and reader.text[start] == ")":
            reader.at += 1
            break
        reader.depth = depth
        item = reader.term()[0] or _parentheses(reader, depth)
        if item is None:
            if reader.at == start:
                reader.skip()
        elif expecting_operator and isinstance(item, WordItem) and item.word.lower() in _OPERATORS:
            operator = item.word.lower()
            group.take(operator, _argument(reader) if operator in _WITH_ARGUMENT else 0)
            expecting_operator = False
        else:
            group.children.append(item)
            expecting_operator = True
    return group.item()


def _parentheses(reader: Reader, depth: int) -> Item | None:
    if not reader.text.startswith("(", reader.at):
        return None
    reader.at += 1
    return advanced_terms(reader, depth + 1)


def _argument(reader: Reader) -> int:
    """The number in parentheses after the name of an operator; 0: none."""
    match = _ARGUMENT.match(reader.text, reader.at)
    if match is None:
        return 0
    if match.group(1) is None:
        raise LanguageError("expected an integer argument", position_of(reader.text, reader.at, "query"))
    reader.at = match.end()
    return int(match.group(1))
