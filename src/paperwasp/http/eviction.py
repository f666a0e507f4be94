"""Chooses which connections of a port have to go.

Once a second, and when an address has more than it may, those are closed that

* have taken too long for what is to come from their clients: a first request, the head of one, anything at all after
  an answer, reading an answer; a body that comes too slowly is refused instead
* are idle, where their address has too many, or all of them together are nearly as many as there may be: first
  those that never asked anything, and of these the longest idle
* have unread answers, where those of all connections take too much memory: first the longest unread; this is looked
  at whenever a client begins not to read, too.

Everything here runs on the event loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Protocol, TypeVar

from paperwasp import limits


class Watched(Protocol):
    """A connection, as far as the choice needs to know it."""

    address: str
    has_asked: bool
    since: float
    """When it began, or its last answer was ready."""
    unread_since: float

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request, and has sent every answer."""

    @property
    def unread_bytes(self) -> int:
        """Of answers that wait for the client to read."""

    def is_overdue(self, now: float) -> bool:
        """Whether the client has taken too long for what it should do next."""


_Watched = TypeVar("_Watched", bound=Watched)


def choose_leaving(connections: Collection[_Watched], now: float) -> list[_Watched]:
    """The connections that have to go, each once."""
    gone = {each: None for each in connections if each.is_overdue(now)}
    rest = [each for each in connections if each not in gone] if gone else connections
    gone.update(dict.fromkeys(choose_too_many(rest)))
    gone.update(dict.fromkeys(choose_unread(rest)))
    return list(gone)


def choose_unread(connections: Iterable[_Watched]) -> list[_Watched]:
    """Choose the connections with the longest unread answers, where these are too much memory together."""
    unread = [(each.unread_since, each.unread_bytes, each) for each in connections if each.unread_since]
    excess_bytes = sum(size_bytes for _, size_bytes, _ in unread) - limits.HTTP_UNREAD_ANSWERS_BYTES
    gone: list[_Watched] = []
    for _, size_bytes, each in sorted(unread, key=lambda one: one[0]):
        if excess_bytes <= 0:
            break
        gone.append(each)
        excess_bytes -= size_bytes
    return gone


def choose_too_many(connections: Collection[_Watched]) -> list[_Watched]:
    """Of the idle ones those that are more than their address, or all together, may have: first those that never asked
    anything, and of these the longest idle."""
    counts = Counter(each.address for each in connections)
    is_crowded = len(connections) > limits.HTTP_CONNECTIONS_CROWDED
    if not is_crowded and max(counts.values(), default=0) <= limits.HTTP_ADDRESS_CONNECTIONS:
        return []
    idle = sorted((each for each in connections if each.is_idle), key=lambda each: (each.has_asked, each.since))
    gone: dict[_Watched, None] = {}
    for each in idle:
        if counts[each.address] > limits.HTTP_ADDRESS_CONNECTIONS:
            counts[each.address] -= 1
            gone[each] = None
    left = len(connections) - len(gone)
    if left > limits.HTTP_CONNECTIONS_CROWDED:
        rest = [each for each in idle if each not in gone]
        gone.update(dict.fromkeys(rest[: left - limits.HTTP_CONNECTIONS_CALM]))
    return list(gone)
