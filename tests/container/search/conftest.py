"""What holds for all tests of searches in a container."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patience import default_timeout


@pytest.fixture(autouse=True, scope="module")
def _timeout_of_the_service() -> Iterator[None]:
    """Queries have the service's own timeout, whatever a service that other files share has made of it."""
    with default_timeout():
        yield
