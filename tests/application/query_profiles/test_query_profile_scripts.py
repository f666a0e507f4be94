"""The golden scripts of query profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.application.query_profiles.query_profile_scripts import SCRIPTS, run


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda p: p.stem)
def test_script(path: Path) -> None:
    run(path)
