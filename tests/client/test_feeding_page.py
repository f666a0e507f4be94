"""The examples of docs/reference/feeding.md, run: its files, its commands, and what they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.client.commands import run_command
from tests.service.in_process import active, deployed_service
from tests.service.music import SERVICES

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "feeding.md"
_BLOCK: Final = re.compile(r"^(?:`([^`\n]+)`:\n\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pattern_of(shown: str) -> str:
    """An expression for what a command prints; `…` stands for anything in a line."""
    return r"[^\n]*".join(map(re.escape, shown.split("…")))


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = _BLOCK.findall(PAGE.read_text())
    files = {name: content for name, _, content in blocks if name}
    schema = files["schemas/book.sd"]
    services = SERVICES.replace('type="music"', 'type="book"')
    ran_commands = 0
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy({"services.xml": services, "schemas/book.sd": schema}))
        for name, kind, content in blocks:
            if name:
                path = tmp_path / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(content)
            if kind == "console":
                for example in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                    command, _, shown = example.partition("\n")
                    ran = run_command(*shlex.split(command)[1:], environment={"PAPERWASP_URL": service.url})
                    lines = [line.rstrip() for line in (ran.out + ran.err).splitlines() if line.strip()]
                    assert re.fullmatch(pattern_of(shown.rstrip("\n")), "\n".join(lines)), (command, lines)
                    assert ran.code == (1 if "could not be read" in shown or " 1 failed" in shown else 0)
                    ran_commands += 1
    assert ran_commands == content_count(PAGE.read_text())


def content_count(page: str) -> int:
    """How many commands the page shows."""
    return len(re.findall(r"^\$ paperwasp ", page, re.MULTILINE))
