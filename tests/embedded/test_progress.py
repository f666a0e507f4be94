"""What a feed shows while it runs: a bar in a terminal, and one in a notebook."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import paperwasp
from paperwasp.embedded.feeding import FeedResult, shown_progress
from tests.embedded.music import SCHEMA

ROOT = Path(__file__).parent.parent.parent
ROWS: list[dict[str, Any]] = [{"id": str(number), "title": "Blue", "year": number} for number in range(600)]
WRONG = {"id": "x", "year": "none"}
PROGRAM = """
import paperwasp
from tests.embedded.music import SCHEMA
from tests.embedded.test_progress import ROWS, WRONG
with paperwasp.Service(SCHEMA) as service:
    service.feed([*ROWS, WRONG], progress=True)
"""


class Kernel(ModuleType):
    """What IPython is in a kernel of Jupyter, as far as the bar knows it. `shown` has the page of each update."""

    def __init__(self) -> None:
        super().__init__("IPython")
        self.shown: list[str] = []
        self.kernel = object()

    def get_ipython(self) -> Kernel:
        return self

    def HTML(self, text: str) -> str:  # noqa: N802 — IPython's name
        return text

    def display(self, page: str, *, display_id: bool) -> Kernel:
        assert display_id
        self.update(page)
        return self

    def update(self, page: str) -> None:
        self.shown.append(page)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setitem(sys.modules, "IPython", made)
    monkeypatch.setitem(sys.modules, "IPython.display", made)
    return made


def test_a_notebook_has_a_bar_that_is_updated_in_place(kernel: Kernel) -> None:
    reports: list[int] = []
    with paperwasp.Service(SCHEMA) as service:
        service.feed([*ROWS, WRONG], progress=True, report=lambda so_far: reports.append(so_far.ok))
    assert kernel.shown[0] == '<progress value="0" max="601"></progress> 0 of 601 fed'
    assert kernel.shown[-1] == '<progress value="601" max="601"></progress> 601 of 601 fed, 1 failed'
    assert reports[-1] == 600


def test_what_has_no_length_has_a_bar_without_an_end(kernel: Kernel) -> None:
    with paperwasp.Service(SCHEMA) as service:
        service.feed(iter(ROWS), progress=True)
    assert kernel.shown[-1] == "<progress></progress> 600 fed"


def test_a_terminal_has_a_bar() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    said = bytearray()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=theirs, env=environment) as process:
        os.close(theirs)
        while piece := _read(ours):
            said += piece
        assert process.wait(60) == 0, said.decode()
    os.close(ours)
    text = said.decode()
    assert "Feeding" in text and "601/601" in text and "1 failed" in text, text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def test_standard_output_is_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    with shown_progress(ROWS, None) as report:
        report(FeedResult(ok=3, seconds=1.0))
    assert capfd.readouterr().out == ""
