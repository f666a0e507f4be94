"""Where a visit is: what is kept in a file beside its output, so that it can go on after an interruption."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

import orjson

from paperwasp.base.records import dataclass
from paperwasp.client.visiting.parts import Chunk, Part, VisitOptions
from paperwasp.errors import InvalidInput

ENDING: Final = ".continue"
_SAVE_SECONDS: Final = 1.0


@dataclass(slots=True)
class VisitState:
    """The place of each part, and how much of the output belongs to it."""

    what: dict[str, object]
    parts: list[Part]
    tokens: list[str | None]
    """Of each part, where it goes on; None: at its beginning."""
    done: list[bool]
    documents: int = 0
    size: int = 0
    """The bytes of the output that hold these documents."""
    _saved: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, options: VisitOptions, parts: Sequence[Part]) -> VisitState:
        return cls(options.what(), list(parts), [None] * len(parts), [False] * len(parts))

    @classmethod
    def load(cls, path: Path, options: VisitOptions) -> VisitState:
        """The state that a visit left. Errors: InvalidInput where there is none, or one of another visit."""
        try:
            content = orjson.loads(path.read_bytes())
            state = cls(
                dict(content["what"]),
                [Part(*each) for each in content["parts"]],
                list(content["tokens"]),
                list(content["done"]),
                int(content["documents"]),
                int(content["size"]),
            )
        except OSError as error:
            raise InvalidInput(f"Could not read '{path}': {error.strerror}") from None
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise InvalidInput(f"'{path}' is not what an interrupted visit leaves") from None
        asked = options.what()
        for name, value in state.what.items():
            other = asked.get(name)
            if other != value:
                raise InvalidInput(f"'{path}' is of a visit with {name} {value!r}, and this one has {other!r}")
        return state

    def advance(self, chunk: Chunk, size: int) -> None:
        """Notes that a chunk is in the output, which has `size` bytes now."""
        place = self.parts.index(chunk.part)
        self.documents += len(chunk.lines)
        if chunk.token is not None:
            self.tokens[place] = chunk.token
        self.done[place] = chunk.is_last
        if chunk.token is not None or chunk.is_last:
            self.size = size

    def save_if_due(self, path: Path) -> None:
        if time.monotonic() - self._saved >= _SAVE_SECONDS:
            self.save(path)

    def save(self, path: Path) -> None:
        """Writes the state; a crash leaves the one before or this one."""
        content = {
            "what": self.what,
            "parts": [list(part) for part in self.parts],
            "tokens": self.tokens,
            "done": self.done,
            "documents": self.documents,
            "size": self.size,
        }
        beside = path.with_name(path.name + ".new")
        beside.write_bytes(orjson.dumps(content))
        beside.replace(path)
        self._saved = time.monotonic()
