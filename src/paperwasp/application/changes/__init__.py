"""From the active application to a new one: what the change needs, what must be allowed, and by which override."""

from paperwasp.application.changes.find import find_changes
from paperwasp.application.changes.found import Action, Changes, Refusal, Service
from paperwasp.application.changes.overrides import ValidationOverrides, parse_overrides
from paperwasp.application.changes.told import told_actions, told_refusals

__all__ = [
    "Action",
    "Changes",
    "Refusal",
    "Service",
    "ValidationOverrides",
    "find_changes",
    "parse_overrides",
    "told_actions",
    "told_refusals",
]
