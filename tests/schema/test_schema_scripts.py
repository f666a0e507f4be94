"""Every script of tests/schema/scripts gives what it says: syntax_*.txt as trees, model_*.txt as schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.schema.schema_scripts import SCRIPTS, meaning, run, syntax


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("syntax_*.txt")), ids=lambda p: p.stem)
def test_syntax(path: Path) -> None:
    run(path, syntax)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("model_*.txt")), ids=lambda p: p.stem)
def test_model(path: Path) -> None:
    run(path, meaning)
