"""The needs of a change of an application, as values: actions, and refusals that only an override takes back."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from paperwasp.base.records import dataclass

if TYPE_CHECKING:
    from paperwasp.application.changes.overrides import ValidationOverrides

Kind = Literal["restart", "refeed", "reindex"]
KINDS: Final[tuple[Kind, ...]] = ("restart", "refeed", "reindex")


@dataclass(frozen=True, slots=True)
class Service:
    """A process of Vespa that an action concerns; here they are all parts of one process."""

    name: str
    type: str
    config_id: str
    host: str


@dataclass(frozen=True, slots=True)
class Action:
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
    services: tuple[Service, ...] = ()
    validation_id: str | None = None

    @property
    def cluster_type(self) -> str:
        """As Vespa calls the part of a content cluster that searches."""
        return "search"

    @property
    def service_type(self) -> str:
        return "searchnode"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that is made only where an override allows it."""

    validation_id: str
    message: str


@dataclass(frozen=True, slots=True)
class Changes:
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
