"""Changes of the fields of a schema, read from text: every file in `scripts/` holds cases of one topic.

A case is the fields before, `=>`, the fields after, `---`, and what that needs. Lines before the first case name the
authority. To write the answers anew: `PAPERWASP_WRITE_SCRIPTS=1 pytest tests/application`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paperwasp.application.build import build_model
from paperwasp.application.changes.find import find_changes
from paperwasp.application.changes.found import describe_actions
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage

SCRIPTS = Path(__file__).parent / "scripts"
SERVICES = """<services version="1.0">
  <content id="mycluster" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="test" mode="index"/></documents>
  </content>
</services>"""


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    head, *cases = path.read_text().split("====\n")
    parts = [case.partition("---\n")[::2] for case in cases]
    told = [(text, answer(text)) for text, _ in parts]
    if os.environ.get("PAPERWASP_WRITE_SCRIPTS"):
        path.write_text(head + "".join(f"====\n{text}---\n{answered}" for text, answered in told))
    assert told == parts


def answer(text: str) -> str:
    before, _, after = text.partition("=>\n")
    changes = find_changes(model_of(before), model_of(after))
    lines = [*describe_actions(changes), *(f"refused: {refusal.validation_id}" for refusal in changes.refusals)]
    return "".join(f"{line}\n" for line in lines or ["nothing"])


def model_of(fields: str) -> ApplicationModel:
    schema = f"schema test {{\ndocument test {{\n{fields}}}\n}}\n"
    files = {"services.xml": SERVICES.encode(), "schemas/test.sd": schema.encode()}
    return build_model(ApplicationPackage(files), lambda *_: ())
