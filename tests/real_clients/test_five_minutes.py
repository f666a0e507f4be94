"""docs/start/five-minutes.md, command by command, as it stands there; and the README's program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.real_clients.test_vespa_cli import binary
from tests.service.running import running_service

pytestmark = pytest.mark.clients
PAGE = DOCS / "start" / "five-minutes.md"
SHIM = """#!/bin/sh
case $1 in deploy) target={config} ;; *) target={container} ;; esac
exec {binary} "$@" -t $target
"""


def blocks(language: str) -> list[str]:
    """The page's code, without the block that starts the service."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in found if "paperwasp serve" not in block]


def test_the_page_is_true(tmp_path: Path) -> None:
    with running_service(tmp_path / "data") as service:
        shim = tmp_path / "bin" / "vespa"
        shim.parent.mkdir()
        shim.write_text(SHIM.format(config=service.config_url, container=service.url, binary=binary()))
        shim.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{shim.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "VESPA_CLI_HOME": str(tmp_path / "home"),
            "PAPERWASP_URL": service.url,
            "PAPERWASP_CONFIG_URL": service.config_url,
            "PYTHONWARNINGS": "ignore",
        }

        def run(*command: str) -> str:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        shown = "".join(run("sh", "-eu", "-c", block) for block in blocks("sh"))
        assert '"title": "<hi>Blue</hi> Train"' in shown
        assert '"relevance": 1.3862943611198906' in shown
        port = service.url.rpartition(":")[2]
        script = "".join(blocks("python")).replace("port=8080", f"port={port}")
        printed = run(sys.executable, "-c", script)
        assert "<hi>Blue</hi> in Green" in printed
        assert printed.endswith("Kind of <hi>Blue</hi>\n")


def test_the_readme_is_true(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.stdout == "Kind of Blue\n", done.stderr
