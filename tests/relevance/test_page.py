"""docs/guides/relevance.md: its commands and programs run in their order, and the learned model ranks better."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.children import ROOT
from tests.relevance.test_commands import files

__all__ = ["files"]


def test_the_page_runs(files: Path) -> None:
    """In a folder with the first command's files, and what a checkout has."""
    page = (ROOT / "docs" / "guides" / "relevance.md").read_text()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200"}
    for name in ("examples", "tools"):
        (files / name).symlink_to(ROOT / name)

    def run(command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=files, capture_output=True, text=True, timeout=180, env=environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_shell(block: str) -> str:
        return run(["sh", "-eu", "-c", block])

    first, begin, learn, measure = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert "2 queries" in run_shell(first)
    assert "bm25" in run_shell(begin)
    assert re.search(r"\d{5} rows of 6\d queries", run_shell(learn))
    in_process, *training = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    start = "import paperwasp\nservice = paperwasp.Service('app')\nservice.feed('documents.jsonl')\n"
    assert "<Comparison over 1 queries" in run([sys.executable, "-c", f"{start}{in_process}print(found)"])
    run([sys.executable, "-c", "".join(training)])
    measured = json.loads(run_shell(f"{measure.strip()} --json"))
    means = {each["name"]: each["measures"]["nDCG@10"]["mean"] for each in measured["rankings"]}
    assert means["learned"] > means["default"] > 0
