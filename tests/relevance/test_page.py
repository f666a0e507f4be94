"""docs/relevance.md: its commands and programs run from top to bottom, and the model that is learned ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.children import ROOT
from tests.relevance.test_commands import files

__all__ = ["files"]


def test_the_page_runs(files: Path) -> None:
    page = (ROOT / "docs" / "relevance.md").read_text()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200"}

    def run(command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=files, capture_output=True, text=True, timeout=180, env=environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    evaluate, features = (run(["sh", "-eu", "-c", block]) for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    assert "2 queries" in evaluate and "5 rows" in features
    program = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    run([sys.executable, "-c", program])
    (command,) = re.findall(r"```sh\n(paperwasp evaluate .*?)```", page, re.DOTALL)
    shown = run(["sh", "-eu", "-c", command.replace("--profile votes", "--profile learned")])
    assert "learned" in shown
