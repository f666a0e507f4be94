"""Every script of semantic rules says what the code does."""

from __future__ import annotations

import pytest

from tests.query_languages.rules.rule_scripts import SCRIPTS, check_script


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.txt")))
def test_script(name: str) -> None:
    check_script(name)
