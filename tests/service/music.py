"""The application that the tests of the whole service deploy."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="records" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="music" mode="index"/></documents>
    <nodes><node hostalias="node1" distribution-key="0"/></nodes>
  </content>
</services>
"""
SCHEMA = """schema music {
  document music {
    field title type string {
      indexing: summary | index
      index: enable-bm25
      bolding: on
    }
    field year type int { indexing: summary | attribute }
    field tags type array<string> { indexing: summary | attribute }
  }
  fieldset default { fields: title }
  rank-profile default { first-phase { expression: bm25(title) } }
}
"""
FILES = {"services.xml": SERVICES, "schemas/music.sd": SCHEMA}


def package(files: Mapping[str, str | bytes] = FILES) -> bytes:
    """The application as a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def write_package(folder: Path) -> Path:
    """The application as a folder."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder
