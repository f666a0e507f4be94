"""The document API: its scripts, against real content clusters, and what a script cannot show."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from document_scripts import SCRIPTS, run


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("document_v1_*.txt")), ids=lambda path: path.stem)
def test_script(path: Path, tmp_path: Path) -> None:
    run(path, tmp_path)
