"""The syntax tree of a schema: one kind of node for every element, and a dump of it that tests can read."""

from __future__ import annotations

from collections.abc import Iterator

from paperwasp.base.records import dataclass
from paperwasp.errors import Position


@dataclass(frozen=True, slots=True)
class Node:
    """One element as it was written, its forms made equal: `match: exact` is the tree of `match { exact }`.

    `values` holds what followed the colon, or the free text of a block, as its only item; comments in it are blanked.
    Entries of `inputs` and `constants` have the keyword `input`, those of `rank-properties` the keyword `property`.
    """

    keyword: str
    position: Position
    name: str = ""
    type: str = ""
    inherits: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """The parameters of a function; the new name of an imported field."""
    inline: bool = False
    values: tuple[str, ...] = ()
    value_position: Position | None = None
    children: tuple[Node, ...] = ()

    @property
    def text(self) -> str:
        """The only value, or an empty string."""
        return self.values[0] if self.values else ""

    def all(self, *keywords: str) -> Iterator[Node]:
        """The children with one of these keywords, in order."""
        return (child for child in self.children if child.keyword in keywords)

    def describe(self) -> str:
        """The element as an error names it."""
        return f"{self.keyword} {self.name}" if self.name else self.keyword


def dump(node: Node, indent: int = 0) -> str:
    """The tree as indented lines, one a node: keyword, header, `= values`. Ends with a newline."""
    line = " ".join([node.keyword, *_header(node), *_values(node)])
    return "".join([f"{'  ' * indent}{line}\n", *(dump(child, indent + 1) for child in node.children)])


def _header(node: Node) -> Iterator[str]:
    if node.inline:
        yield "inline"
    if node.name:
        yield node.name
    if node.arguments or (node.keyword == "function" and node.name):
        yield f"({', '.join(node.arguments)})"
    if node.type:
        yield f"type {node.type}"
    if node.inherits:
        yield f"inherits {', '.join(node.inherits)}"


def _values(node: Node) -> Iterator[str]:
    if node.value_position is not None:
        yield "="
        yield ", ".join(repr(" ".join(value.split())) for value in node.values)
