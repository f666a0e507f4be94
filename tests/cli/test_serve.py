"""What a start says where others than its machine reach the config port."""

from __future__ import annotations

import pytest

from paperwasp.cli.serve import _tell_if_open, is_reached_by_others


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
def test_an_address_that_others_reach(host: str, reached: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_reached_by_others(host) == reached
    _tell_if_open(host, 19071, True)
    assert capsys.readouterr().out == ""
    _tell_if_open(host, 19071, False)
    assert ("Whoever reaches port 19071 may deploy" in capsys.readouterr().out) == reached
