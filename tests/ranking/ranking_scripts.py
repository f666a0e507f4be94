"""Golden scripts of the expression language: cases between lines of `====`, each lines of input, a line `---`, and as
many lines of output.

The lines before the first case name the script's authority. PAPERWASP_REWRITE_SCRIPTS=1 writes what the code says into
the script instead of comparing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"


def run(path: Path, answer: Callable[[str], str]) -> None:
    """Compares `answer` of each line of input with its line of output, or rewrites the script."""
    head, *cases = path.read_text().split("====\n")
    parts = [case.partition("---\n")[::2] for case in cases]
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        answers = ["".join(f"{answer(line)}\n" for line in text.splitlines()) for text, _ in parts]
        path.write_text(
            head + "".join(f"====\n{text}---\n{given}" for (text, _), given in zip(parts, answers, strict=True))
        )
        return
    for text, expected in parts:
        for line, wanted in zip(text.splitlines(), expected.splitlines(), strict=True):
            assert answer(line) == wanted, f"{path.name}: {line}"
