"""The parameters and bodies of deployment requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paperwasp import limits
from paperwasp.errors import InvalidInput, TooLarge
from paperwasp.http.messages import Request

ARCHIVE_TYPES: Final = ("application/zip", "application/x-gzip")


def archive_in(request: Request) -> bytes:
    """The body of an upload. Errors: InvalidInput where it is missing or of another type; TooLarge."""
    if not request.body:
        raise InvalidInput("Request contains no data")
    if not request.content_type:
        raise InvalidInput("Request contains no Content-Type header")
    if request.content_type not in ARCHIVE_TYPES:
        supported = ", ".join(ARCHIVE_TYPES)
        raise InvalidInput(f"Content-Type '{request.content_type}' is not supported, supported are: {supported}")
    if len(request.body) > limits.HTTP_PACKAGE_BODY_BYTES:
        raise TooLarge(f"An application package has at most {limits.HTTP_PACKAGE_BODY_BYTES} bytes")
    return request.body


def flag(parameters: Mapping[str, str], *names: str) -> bool:
    """Whether one of the parameters is `true`. A parameter without a value is; what else it may be is `false`."""
    return any(parameters.get(name, "false").lower() in ("true", "") for name in names)
