"""Asking a container, with errors and limits as HTTP has them."""

from __future__ import annotations

import logging
from typing import Final

from paperwasp.container.app import ContainerApp, error_response
from paperwasp.embedded.lent_loop import Closed, LentLoop
from paperwasp.errors import InternalError, NotFound, PaperwaspError
from paperwasp.http.compression import too_large
from paperwasp.http.messages import Answer, Request, Response

_LOG: Final = logging.getLogger("paperwasp.http")


def answer(loop: LentLoop, container: ContainerApp, request: Request) -> Response:
    """The answer, also where handling the request fails. Errors: Closed; NotFound for a streamed answer."""
    try:
        _check_size(container, request)
        return _whole(loop.answer(lambda: container.admit(request)))
    except Exception as error:
        return _failure(request, error)


async def answer_later(loop: LentLoop, container: ContainerApp, request: Request) -> Response:
    """As `answer`, for a coroutine of another event loop."""
    try:
        _check_size(container, request)
        return _whole(await loop.answer_later(lambda: container.admit(request)))
    except Exception as error:
        return _failure(request, error)


def _check_size(container: ContainerApp, request: Request) -> None:
    limit_bytes = container.body_limit_bytes(request.raw_path)
    if len(request.body) > limit_bytes:
        raise too_large(len(request.body), limit_bytes)


def _whole(answered: Answer) -> Response:
    if not isinstance(answered, Response):
        raise NotFound("Streamed answers are not to be had here: leave stream=true out")
    return answered


def _failure(request: Request, error: Exception) -> Response:
    if isinstance(error, Closed):
        raise error
    if isinstance(error, PaperwaspError):
        return error_response(request, error)
    _LOG.error("%s %s failed", request.method, request.raw_path, exc_info=error)
    return error_response(request, InternalError("Internal server error"))
