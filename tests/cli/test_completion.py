"""Completion in shells: bash runs what it is given; of others, what their scripts ask the command is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BASH = """eval "$(paperwasp --show-completion)"
COMP_WORDS=({line}); COMP_CWORD={last}; _paperwasp_completion paperwasp; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
PROPOSALS = pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("paperwasp ba", "backup"),
        ("paperwasp restore --re", "--replace"),
        ("paperwasp backup --since x --da", "--data-dir"),
        ("paperwasp query blue ranking.sort", "ranking.sorting="),
        ("paperwasp query blue --format ta", "table"),
        ("paperwasp feed --format par", "parquet"),
        ("paperwasp doctor --config-url ht", "http://127.0.0.1:19071"),
    ],
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which the command is, whatever is installed."""
    command = tmp_path / "paperwasp"
    command.write_text(f"#!{sys.executable}\nfrom paperwasp.cli import main\nmain()\n")
    command.chmod(0o755)
    return f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"


def run(arguments: list[str], **environment: str) -> str:
    shown = subprocess.run(arguments, env={"TERM": "dumb", **environment}, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in shown.stderr, shown.stderr
    return shown.stdout


def bash() -> str:
    program = shutil.which("bash")
    if program is None:
        pytest.skip("there is no bash")
    return program


@PROPOSALS
def test_what_bash_proposes(line: str, expected: str, path: str, tmp_path: Path) -> None:
    script = BASH.format(line=line, last=len(line.split()) - 1)
    assert expected in run([bash(), "-c", script], PATH=path, HOME=str(tmp_path)).splitlines()


@PROPOSALS
def test_what_zsh_is_told(line: str, expected: str, path: str) -> None:
    shown = run(["paperwasp"], PATH=path, _PAPERWASP_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
    assert f'"{expected.replace(":", chr(92) * 2 + ":")}"' in shown


@PROPOSALS
def test_what_fish_is_told(line: str, expected: str, path: str) -> None:
    fish = {"_TYPER_COMPLETE_FISH_ACTION": "get-args", "_TYPER_COMPLETE_WORD_TO_COMPLETE": line.split()[-1]}
    shown = run(["paperwasp"], PATH=path, _PAPERWASP_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS=line, **fish)
    assert expected in [each.partition("\t")[0] for each in shown.splitlines()]


def test_it_is_installed_where_the_shell_looks(path: str, tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    script = "paperwasp --install-completion; source ~/.bashrc; complete -p paperwasp"
    assert "-F _paperwasp_completion paperwasp" in run([bash(), "-c", script], PATH=path, HOME=os.fspath(home))
