"""Shows why a hit ranks where it does: the `explanation` of a search answer as a tree for reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text
from rich.tree import Tree

Json = Mapping[str, Any]


def explanation_tree(number: int, hit: Json) -> Tree:
    """One branch a phase, and below it the expression: each node's value before what it is the value of."""
    tree = Tree(Text(f"#{number} {hit['id']}", "bold"), guide_style="dim")
    explanation = hit.get("explanation", {})
    if note := explanation.get("note"):
        tree.add(Text(note, "dim"))
    for phase in explanation.get("phases", ()):
        branch = tree.add(_with_value(phase["score"], Text(phase["phase"], "bold")))
        if note := phase.get("note"):
            branch.add(Text(note, "dim"))
        if "tree" in phase:
            _add(branch, phase["tree"])
    return tree


def _add(branch: Tree, node: Json) -> None:
    branch = branch.add(_line(node))
    for child in node.get("children", ()):
        _add(branch, child)
    if cut := node.get("cut"):
        branch.add(Text(f"… {cut}", "dim"))


def _line(node: Json) -> Text:
    text = Text(node["expression"])
    if "feature" in node:
        text.append(f" = {node['feature']}", "dim")
    if "shown" in node:
        text.append(" (shown above)", "dim")
    if node.get("taken") is False:
        return Text("not taken: ", "dim") + Text(node["expression"], "dim")
    return _with_value(node.get("value"), text)


def _with_value(value: object, text: Text) -> Text:
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    return Text(f"{shown}  ", "cyan") + text
