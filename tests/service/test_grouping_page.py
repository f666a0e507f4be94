"""The guide to grouping, run: its package, its documents, and its requests with the groups that they are answered with.

A block of code belongs to what the line before it names between backquotes; one after "Groups:" is what is below the
root of the answer to the request before it.
"""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from tests.service.in_process import active, deployed_service
from tests.service.test_component_pages import DOCS, ask

BLOCK = re.compile(r"^(?:`([^`\n]+)`|(Groups)):\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_guide(tmp_path: Path) -> None:
    blocks = [(name or said, text) for name, said, text in BLOCK.findall((DOCS / "guides" / "facets.md").read_text())]
    with deployed_service(tmp_path) as service:
        active(service.deploy({name: text for name, text in blocks if "." in name}))
        answered: object = None
        compared = 0
        for name, text in blocks:
            if name.startswith("POST "):
                answered = ask(service, name.removeprefix("POST "), text)
            elif name == "Groups":
                assert answered == orjson.loads(text), orjson.dumps(answered).decode()
                compared += 1
        assert compared == 4
