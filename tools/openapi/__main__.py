"""`python -m tools.openapi` writes the descriptions."""

from __future__ import annotations

from tools.openapi.description import write

write()
