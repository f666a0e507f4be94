"""Responses of applications, as tests look at them."""

from __future__ import annotations

from paperwasp.http.messages import Response, StreamedResponse


def whole(response: Response | StreamedResponse) -> Response:
    """A response whose body is there at once."""
    assert isinstance(response, Response), "the response is streamed"
    return response
