"""A plugin of pytest that puts `VespaLocal` in the place of pyvespa's `VespaDocker`, so that no line changes at all.

    pytest -p paperwasp.testing.instead_of_docker tests/integration

It is loaded where it is asked for, before tests are collected: what they import from `vespa.deployment` is VespaLocal.
"""

from __future__ import annotations

import pytest
import vespa.deployment

from paperwasp.testing.local import VespaLocal


def pytest_configure(config: pytest.Config) -> None:
    """Replaces the class until the run has ended."""
    patch = pytest.MonkeyPatch()
    patch.setattr(vespa.deployment, "VespaDocker", VespaLocal)
    config.add_cleanup(patch.undo)


__all__ = ["pytest_configure"]
