"""Changes as text: for the log of a deployment, for the answer that refuses it, and for people.

The shape is that of Vespa, since people search the web for such lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from paperwasp.application.changes.found import Action, Changes, Kind, Refusal
from paperwasp.application.changes.validations import VALIDATIONS

_ALLOW: Final = (
    "To allow this add <allow until='yyyy-mm-dd'>{id}</allow> to validation-overrides.xml, "
    "see https://docs.vespa.ai/en/reference/applications/validation-overrides.html"
)
_HEADINGS: Final[Mapping[Kind, str]] = {
    "restart": "Change(s) between active and new application that require restart:",
    "refeed": "Change(s) between active and new application that may require re-feed:",
    "reindex": "Change(s) between active and new application that may require re-index:",
}


def describe_actions(changes: Changes) -> tuple[str, ...]:
    """One text for each kind of action that there is: a heading, and all its reasons."""
    texts = []
    for kind, heading in _HEADINGS.items():
        if actions := changes.of_kind(kind):
            texts.append("\n".join([heading, *(line for action in actions for line in _action(action))]))
    return tuple(texts)


def _action(action: Action) -> Iterator[str]:
    where = f"document type '{action.document_type}' in cluster '{action.cluster}' because:"
    indent = ""
    match action.kind:
        case "restart":
            yield f"In cluster '{action.cluster}' of type '{action.cluster_type}':"
            yield f"    Restart services of type '{action.service_type}' because:"
            indent = "    "
        case "refeed":
            yield f"{action.name}: Consider removing data and re-feed {where}"
        case "reindex":
            yield f"{action.name}: Consider re-indexing {where}"
    yield from (f"{indent}    {number}) {message}" for number, message in enumerate(action.messages, 1))


def describe_refusals(refusals: Iterable[Refusal]) -> str:
    """Why a deployment is refused: each kind of change once, with its reasons and the override that allows it."""
    by_id: dict[str, list[str]] = {}
    for refusal in refusals:
        by_id.setdefault(refusal.validation_id, []).append(refusal.message)
    return "\n".join(_refusal(validation_id, messages) for validation_id, messages in by_id.items())


def _refusal(validation_id: str, messages: list[str]) -> str:
    heading, allow = f"{validation_id}: {VALIDATIONS[validation_id]}:", _ALLOW.format(id=validation_id)
    if len(messages) == 1:
        return f"{heading} {messages[0]}. {allow}"
    return "\n".join([heading, *(f"\t{message}" for message in messages), allow])
