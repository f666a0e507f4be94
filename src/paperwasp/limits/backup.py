"""Limits of backups and restores."""

from __future__ import annotations

from typing import Final

BACKUP_PIECE_BYTES: Final = 256 * 1024
"""Read, hashed and sent at a time."""
BACKUP_CAPTURES: Final = 5
"""How often the files are opened again because an application was deployed in between, before that is an error."""
BACKUP_CAPTURE_SECONDS: Final = 0.5
"""Pause before they are opened again."""
BACKUP_MANIFEST_BYTES: Final = 256 * 1024 * 1024
"""The largest list of files that a backup may have."""
BACKUP_KNOWN_FILES: Final = 100_000
"""Files of an earlier backup that a request for the next one may name."""
BACKUP_ZSTD_LEVEL: Final = 3
BACKUP_TIMEOUT_SECONDS: Final = 120.0
"""How long a service may send nothing, or take to begin, before the command gives up."""
