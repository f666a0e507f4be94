"""A page of HTML in Debian's chromium, without a window and without a network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from typing import Any, Final

BROWSER: Final = shutil.which("chromium")
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1000,800",
    "--virtual-time-budget=2000",
)
_SECONDS: Final = 120
_COLOURS: Final = {False: "background: #fff; color: #111", True: "background: #111; color: #ddd"}


def look(html: str, script: str, *, is_dark: bool = False) -> dict[str, Any]:
    """What a script finds in the page when it has loaded: it is the body of a function that gives an object."""
    assert BROWSER is not None
    page = (
        f"<!doctype html><meta charset=utf-8><body style='{_COLOURS[is_dark]}'>{html}<script id=facts>"
        f"addEventListener('load', () => setTimeout(() => {{ const found = (() => {{ {script} }})();"
        "const shown = document.createElement('pre'); shown.id = 'found';"
        "shown.textContent = JSON.stringify(found); document.body.append(shown); }, 100));</script>"
    )
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "page.html"
        file.write_text(page)
        shown = subprocess.run(
            [BROWSER, *_FLAGS, f"--user-data-dir={folder}/browser", "--dump-dom", file.as_uri()],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env={**os.environ, "HOME": folder},
            check=False,
        )
    found = re.search(r'<pre id="found">(.*?)</pre>', shown.stdout, re.DOTALL)
    assert found, shown.stdout[-2000:] + shown.stderr[-2000:]
    facts: dict[str, Any] = json.loads(unescape(found[1]))
    return facts
