"""A thousand deployments in a row leave no more behind than two hundred: neither memory nor files.

By default only some hundred are done; PAPERWASP_DEPLOYMENTS says how many else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.children import ROOT

DEPLOYMENTS = os.environ.get("PAPERWASP_DEPLOYMENTS", "400")


def test_many_deployments_in_a_row(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.configserver.many_deployments", str(tmp_path), DEPLOYMENTS]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
