"""The states of a connection of HTTP/1.1, by what it waits for.

state      what it waits for                                          then
HEAD       the head of a request                                      BODY, or ANSWER where there is no body
BODY       more of a body that is wanted                              ANSWER
ANSWER     the answer, and that the client reads                      HEAD
DISCARD    the rest of a body that was refused, for a while           HEAD
LINGER     that the client has seen the last answer and closes        the end
"""

from __future__ import annotations

from enum import Enum, auto


class State(Enum):
    """The state of a connection, by what it waits for."""

    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    DISCARD = auto()
    LINGER = auto()
