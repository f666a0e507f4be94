"""What the hostile table sends: attacks of one request, and sieges of many at once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any, ClassVar, Final

from bench.service import Running

ANSWER_SECONDS: Final = 180.0
GZIP: Final = {"Content-Encoding": "gzip"}
JSON: Final = {"Content-Type": "application/json"}
WHERE: Final = "select * from item where "


@dataclass(frozen=True)
class Attack:
    """One request."""

    name: str
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    undo: Attack | None = None
    """What takes back what it stores, once it is seen what it did: what is stored takes memory by right."""
    keeps: ClassVar[bool] = False

    def __call__(self, server: Running) -> int:
        """The status of the answer; 0: there was none."""
        return send(server.port, self)


@dataclass(frozen=True)
class Siege:
    """What takes more than one request."""

    name: str
    act: Callable[[Running], int]
    """Returns the status that counts."""
    keeps: bool = False
    """Whether what it deploys stays: the memory is to be back after what follows it."""
    undo: ClassVar[Attack | None] = None

    def __call__(self, server: Running) -> int:
        return self.act(server)


def send(port: int, attack: Attack) -> int:
    """The status of the answer; 0: there was none."""
    connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request(attack.method, attack.path, attack.body, attack.headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


def query(name: str, content: dict[str, Any], squeeze: bool = True, raw: bytes | None = None) -> Attack:
    """A search by POST. `raw`: the body, where it is no JSON of the content."""
    body = json.dumps(content).encode() if raw is None else raw
    headers = {**JSON, **GZIP} if squeeze else JSON
    return Attack(f"/search/ with {name}", "POST", "/search/", gzip.compress(body) if squeeze else body, headers)
