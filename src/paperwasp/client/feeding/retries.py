"""Which operations are sent again when the connection broke or the service was not available."""

from __future__ import annotations

from collections.abc import Set

from paperwasp.base.records import dataclass
from paperwasp.client.feeding.operations import OperationType
from paperwasp.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class RetryStrategy:
    """Status 429 is always sent again, and not counted; this is for status 503 and connections that break."""

    operations: Set[OperationType] = frozenset(OperationType)
    """The kinds that may be sent again. Leave out what must not be done twice, such as updates that increment."""
    retries: int | None = None
    """The most that one operation is sent again. None: as long as its timeout allows."""

    def __post_init__(self) -> None:
        if self.retries is not None and self.retries < 0:
            raise InvalidInput(f"retries is 0 or more, not {self.retries}")

    def allows(self, kind: OperationType, attempts: int) -> bool:
        """Whether an operation may be sent again after this number of failures."""
        return kind in self.operations and (self.retries is None or attempts <= self.retries)
