"""What a start says where others than its machine reach the config port."""

from __future__ import annotations

import pytest

from paperwasp.cli.serve import is_reached_by_others


@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("0.0.0.0", True),
        ("::", True),
        ("10.0.0.3", True),
        ("search.example", True),
        ("127.0.0.1", False),
        ("127.0.0.9", False),
        ("::1", False),
        ("localhost", False),
    ],
)
def test_an_address_that_others_reach(host: str, reached: bool) -> None:
    assert is_reached_by_others(host) == reached
