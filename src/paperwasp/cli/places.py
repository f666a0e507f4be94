"""Errors about a package that a command deploys itself, shown with the lines that they are about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paperwasp.errors import InvalidPackage


@contextmanager
def shown_places(application: Path | None) -> Iterator[None]:
    """Errors that name places in the package are raised again with an excerpt of it; None: there is no package."""
    try:
        yield
    except InvalidPackage as error:
        if application is None:
            raise
        from paperwasp.application.directory import load_package
        from paperwasp.client.excerpts import excerpts

        lines = excerpts(error.message, load_package(application).files)
        raise InvalidPackage("\n".join(lines), error.findings) from None
