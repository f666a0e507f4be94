"""Which version this is, and which version of Vespa's interfaces it speaks."""

from __future__ import annotations

from typing import Final

from paperwasp import __version__

VERSION: Final = __version__
VESPA_VERSION: Final = "8.763.13"
"""The version reported to clients that request one: that of the Vespa whose interfaces were measured."""
