"""The build: what stands in two places is the same in both."""

from __future__ import annotations

import re
from pathlib import Path

from paperwasp.text.linguistics.versions import versions

ROOT = Path(__file__).parents[2]


def test_checkpoints_name_the_version_of_the_stemmer_that_the_build_asks_for() -> None:
    backend = (ROOT / "tools" / "build_backend.py").read_text()
    found = re.search(r'^STEMMER_REQUIREMENT = "(\w+)==([\d.]+)"$', backend, re.MULTILINE)
    assert found
    assert versions()[found[1]] == found[2]


def test_no_dependency_needs_a_compiler_of_whoever_installs_the_wheel() -> None:
    """The stemmer is published as source alone; its compiled module is part of the wheel."""
    assert "krovetz" not in (ROOT / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("\n]")[0]
