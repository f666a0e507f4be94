"""What holds for all tests of the embedded service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patience import patient_queries


@pytest.fixture(autouse=True, scope="package")
def _patient() -> Iterator[None]:
    """Services begin, and some are shared by a module, with the longer time of queries."""
    with patient_queries():
        yield
