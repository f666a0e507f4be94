"""What the command `doctor` compares a machine with."""

from __future__ import annotations

from typing import Final

MEMORY_BYTES: Final = 4 << 30
"""That the service is made for; with less, feeding is blocked soon."""
MEMORY_LEAST_BYTES: Final = 1 << 30
CORES: Final = 2
MAPPED_FILES: Final = 65_530
"""What Linux allows a process by default."""
DISK_FREE_BYTES: Final = 2 << 30
SYNCS: Final = 64
SYNC_BYTES: Final = 4096
SYNC_SECONDS: Final = 3.0
"""How long syncing may be measured."""
SYNC_GOOD_SECONDS: Final = 0.005
"""A batch of operations waits for one sync: a client with one operation in flight gets 200 a second."""
SYNC_BAD_SECONDS: Final = 0.05
SYNC_UNLIKELY_SECONDS: Final = 0.000_01
"""No disk is as fast: what is said to be synced may be in memory."""
YEAR_LEAST: Final = 2025
ANSWER_SECONDS: Final = 5.0
PIECE_BYTES: Final = 1 << 20
RESOURCE_WARNING: Final = 0.9
"""The share of a resource limit from which on usage is worth a warning."""
