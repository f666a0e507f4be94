"""Application packages in the forms that Python programs have, made into the archive that is deployed."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from paperwasp.application.package import load_package
from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput

_SCHEMA_NAME: Final = compile_later(r"^\s*(?:schema|search)\s+([A-Za-z_][A-Za-z0-9_]*)", re.MULTILINE)
_SERVICES: Final = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="content" version="1.0">
    <redundancy>1</redundancy>
    <documents>{documents}</documents>
    <nodes><node distribution-key="0" hostalias="node1"/></nodes>
  </content>
</services>
"""


@runtime_checkable
class Zippable(Protocol):
    """A package that makes its own archive, as pyvespa's `ApplicationPackage` does."""

    def to_zip(self) -> io.BytesIO: ...


Application = str | os.PathLike[str] | bytes | Mapping[str, str | bytes] | Zippable
"""A folder, zip file or schema file by its path; the bytes of a zip file; the files of a package by their paths in it;
the text of one schema; or pyvespa's ApplicationPackage."""


def archive_of(application: Application) -> bytes:
    """The package as a zip file. Errors: InvalidInput, UnreadablePackage."""
    if isinstance(application, bytes):
        return application
    if isinstance(application, Mapping):
        return _zipped(application)
    if isinstance(application, str) and (schema := _SCHEMA_NAME.match(application)):
        return _zipped({f"schemas/{schema[1]}.sd": application})
    if isinstance(application, str | os.PathLike):
        path = Path(application)
        if path.suffix == ".sd" and path.is_file():
            return _zipped({f"schemas/{path.name}": path.read_bytes()})
        return load_package(path).to_zip()
    if isinstance(application, Zippable):
        return application.to_zip().getvalue()
    raise InvalidInput(
        f"An application is a folder or zip file by its path, the bytes of a zip file, files by their paths, the text "
        f"of a schema, or pyvespa's ApplicationPackage; this is a {type(application).__name__}"
    )


def _zipped(files: Mapping[str, str | bytes]) -> bytes:
    """Where there is no services.xml, all schemas are indexed in one content cluster. Errors: InvalidInput."""
    for path, content in files.items():
        if not isinstance(path, str) or not isinstance(content, str | bytes):
            raise InvalidInput(
                f"The files of an application are texts or bytes by their paths: '{path}' is of type "
                f"{type(content).__name__}"
            )
    if not any(path.startswith("schemas/") for path in files) and "services.xml" not in files:
        raise InvalidInput("An application has at least one file schemas/<name>.sd")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if "services.xml" not in files:
            names = [Path(path).stem for path in files if path.startswith("schemas/") and path.endswith(".sd")]
            documents = "".join(f'<document type="{name}" mode="index"/>' for name in names)
            archive.writestr("services.xml", _SERVICES.format(documents=documents))
        for path, content in files.items():
            archive.writestr(path, content)
    return buffer.getvalue()
