"""Path patterns to handlers.

A pattern is a path whose segments are literals, `{name}` for one segment (never an empty one), or, at the
end, `{name...}` for the rest of the path as it came (raw, may be empty). Routes are tried in the order in which they
were added; a route that fits the path but not the method makes the answer 405 instead of 404.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct

from paperwasp.http.messages import Answer, Request, Response, decode, json_response

Handler = Callable[[Request, Mapping[str, str]], Awaitable[Answer]]
"""(request, the named parts of its path, decoded) → response."""

NotFoundHandler = Callable[[Request], Response]
MethodHandler = Callable[[Request, tuple[str, ...]], Response]
"""(request, the methods that the path does have) → response."""

_REST: Final = "..."


def _not_found(request: Request) -> Response:
    return json_response(404, {"error-code": "NOT_FOUND", "message": f"Nothing at path '{request.raw_path}'"})


def _method_not_allowed(request: Request, allowed: tuple[str, ...]) -> Response:
    message = f"Method '{request.method}' is not supported at '{request.raw_path}'"
    return json_response(405, {"error-code": "METHOD_NOT_ALLOWED", "message": message}, {"Allow": ", ".join(allowed)})


class PathRoute(Struct, frozen=True):
    """One pattern, the method it takes, and who answers."""

    method: str
    segments: tuple[str, ...]
    handler: Handler

    def match(self, raw_segments: tuple[str, ...]) -> Mapping[str, str] | None:
        """The named parts of the path, or None where the pattern does not fit."""
        arguments: dict[str, str] = {}
        for index, pattern in enumerate(self.segments):
            if pattern.endswith(_REST + "}"):
                arguments[pattern[1 : -len(_REST) - 1]] = "/".join(raw_segments[index:])
                return arguments
            if index >= len(raw_segments) or not _fits(pattern, raw_segments[index], arguments):
                return None
        return arguments if len(raw_segments) == len(self.segments) else None


def _fits(pattern: str, raw_segment: str, arguments: dict[str, str]) -> bool:
    segment = decode(raw_segment)
    if pattern.startswith("{"):
        arguments[pattern[1:-1]] = segment
        return segment != ""
    return pattern == segment


class Router:
    """Finds the handler of a request and awaits it.

    HEAD is answered by the handler of GET (the server leaves the body out).
    """

    def __init__(
        self, not_found: NotFoundHandler = _not_found, method_not_allowed: MethodHandler = _method_not_allowed
    ) -> None:
        self._routes: list[PathRoute] = []
        self._not_found = not_found
        self._method_not_allowed = method_not_allowed

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        """Binds `method` on `pattern`, e.g. `("GET", "/document/v1/{namespace}/{rest...}", get)`."""
        self._routes.append(PathRoute(method, tuple(pattern.removeprefix("/").split("/")), handler))

    async def handle(self, request: Request) -> Answer:
        """The answer of the first route that fits path and method."""
        raw_segments = tuple(request.raw_path.removeprefix("/").split("/"))
        method = "GET" if request.method == "HEAD" else request.method
        allowed: list[str] = []
        for route in self._routes:
            arguments = route.match(raw_segments)
            if arguments is None:
                continue
            if route.method == method:
                return await route.handler(request, arguments)
            allowed.append(route.method)
        if allowed:
            return self._method_not_allowed(request, tuple(dict.fromkeys(allowed)))
        return self._not_found(request)
