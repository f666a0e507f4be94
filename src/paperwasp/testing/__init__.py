"""Tests of applications: fixtures for pytest, what stands in for pyvespa's VespaDocker, and Vespa's test suites.

Names are imported when they are asked for: pytest loads the plugin in every run, whether or not it has such tests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from paperwasp.testing.local import DeploymentFailed as DeploymentFailed
    from paperwasp.testing.local import VespaLocal as VespaLocal

_HOMES: Final = {"DeploymentFailed": "paperwasp.testing.local", "VespaLocal": "paperwasp.testing.local"}
__all__ = ["DeploymentFailed", "VespaLocal"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'paperwasp.testing' has no attribute '{name}'")
