"""What a container says to requests while it serves no application."""

from __future__ import annotations

from collections.abc import Iterable


def no_application(ports: Iterable[int] = ()) -> str:
    """The message, where containers of applications listen on these other ports."""
    listed = ", ".join(map(str, sorted(ports)))
    if listed:
        return f"No application is served on this port: containers listen on {listed}, by their services.xml"
    return "No application is active yet: deploy one"
