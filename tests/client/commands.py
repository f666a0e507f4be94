"""Runs commands of the command line in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from paperwasp.cli import main


class Ran(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class _Input(io.TextIOWrapper):
    """Standard input with a content."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), "utf-8")


def run_command(*arguments: object, content: bytes = b"", environment: Mapping[str, str] | None = None) -> Ran:
    """Runs `paperwasp` with these arguments and this standard input."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
    err = io.StringIO()
    shape = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb", **(environment or {})}
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", ["paperwasp", *map(str, arguments)]),
        patch.object(sys, "stdin", _Input(content)),
        patch.dict("os.environ", shape),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    out.flush()
    written = out.buffer.getvalue() if isinstance(out.buffer, io.BytesIO) else b""
    return Ran(code, written.decode(), err.getvalue())
