"""The examples of docs/guides/in-process.md, run from top to bottom."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "in-process.md"


def test_the_examples_of_the_page_run() -> None:
    names: dict[str, Any] = {}
    checked = 0
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        if ">>>" not in block:
            exec(compile(block, str(PAGE), "exec"), names)
            continue
        test = parser.get_doctest(block, names, PAGE.name, str(PAGE), 0)
        test.globs = names
        assert runner.run(test, clear_globs=False).failed == 0
        checked += len(test.examples)
    assert checked > 10
