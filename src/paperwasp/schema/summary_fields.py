"""One field of a document summary, as a field or a document summary declares it.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#summary
"""

from __future__ import annotations

from paperwasp.schema.problems import Problems
from paperwasp.schema.summary_model import SummaryField
from paperwasp.schema.tree import Node
from paperwasp.schema.values import boolean


def summary_of(node: Node, name: str, source: str, problems: Problems) -> SummaryField:
    """The summary field `name` that the element says, of the field `source` unless it names others."""
    words = {child.keyword for child in node.children}
    transforms = words & {"dynamic", "tokens"}
    if len(transforms) > 1:
        problems.error(f"{node.describe()} cannot be both dynamic and tokens", node.position)
    return SummaryField(
        name=name,
        sources=values_of(node, "source") or (source,),
        dynamic="dynamic" in words,
        bolding="dynamic" not in words and any(boolean(child) for child in node.all("bolding")),
        tokens="tokens" in words,
        matched_elements_only="matched-elements-only" in words,
        select_elements_by=_feature(node, problems),
        struct_fields=values_of(node, "struct-field"),
        position=node.position,
    )


def values_of(node: Node, keyword: str) -> tuple[str, ...]:
    """The values of all elements of that keyword, each once."""
    return tuple(dict.fromkeys(value for child in node.all(keyword) for value in child.values))


def _feature(node: Node, problems: Problems) -> str:
    feature = ""
    for child in node.all("select-elements-by"):
        feature = child.text.strip()
        if not feature or " " in feature:
            problems.error("select-elements-by must name one summary feature", child.value_position)
    return feature
