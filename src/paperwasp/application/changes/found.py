"""The needs of a change of an application: actions, refusals that only an override lifts, and both of them as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from paperwasp.application.changes.validations import VALIDATIONS

if TYPE_CHECKING:
    from paperwasp.application.changes.overrides import ValidationOverrides

Kind = Literal["restart", "refeed", "reindex"]
KINDS: Final[tuple[Kind, ...]] = ("restart", "refeed", "reindex")


class ConcernedService(Struct, frozen=True):
    """A process of Vespa that an action concerns; here they are all parts of one process."""

    name: str
    type: str
    config_id: str
    host: str


class Action(Struct, frozen=True):
    """A step that the new application needs beside its activation, for one content cluster.

    `validation_id` is what an override must name for the change to be made at all; None: nothing need allow it.
    """

    kind: Kind
    name: str
    """For reindexing and refeeding, the validation id, or `reindexing`. A restart has none."""
    cluster: str
    document_type: str
    """Empty for a restart: that is of the cluster."""
    messages: tuple[str, ...]
    services: tuple[ConcernedService, ...] = ()
    validation_id: str | None = None

    @property
    def cluster_type(self) -> str:
        """As Vespa calls the part of a content cluster that searches."""
        return "search"

    @property
    def service_type(self) -> str:
        return "searchnode"


class Refusal(Struct, frozen=True):
    """A change that is made only where an override allows it."""

    validation_id: str
    message: str


class Changes(Struct, frozen=True):
    """The differences between two applications that need something. `refusals` also has those of the actions."""

    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    def of_kind(self, kind: Kind) -> tuple[Action, ...]:
        return tuple(action for action in self.actions if action.kind == kind)

    def find_refused(
        self, overrides: ValidationOverrides, now: date, ignore_validation_errors: bool = False
    ) -> tuple[Refusal, ...]:
        """The refusals that nothing allows; empty: the new application may be activated. `now` is a day in UTC."""
        if ignore_validation_errors:
            return ()
        return tuple(refusal for refusal in self.refusals if not overrides.allows(refusal.validation_id, now))


# Changes as text: for the log of a deployment, for the answer that refuses it, and for people.
#
# The shape is that of Vespa, since people search the web for such lines.


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
    shown: list[str] = []
    for validation_id, messages in by_id.items():
        heading, allow = f"{validation_id}: {VALIDATIONS[validation_id]}:", _ALLOW.format(id=validation_id)
        if len(messages) == 1:
            shown.append(f"{heading} {messages[0]}. {allow}")
        else:
            shown += [heading, *(f"\t{message}" for message in messages), allow]
    return "\n".join(shown)
