"""The model cache as the command `models` sees it: files, each written whole and with its hash kept beside all.

The file SHA256SUMS of the folder has a line for each file that this command brought, as `sha256sum --check` reads it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.components.embedders.model_files import cache_folder
from paperwasp.errors import InvalidInput

SUMS: Final = "SHA256SUMS"
_LINE: Final = compile_later(r"([0-9a-f]{64}) [ *](.+)")
_CHUNK_BYTES: Final = 1 << 20


def recorded_hashes() -> dict[str, str]:
    """Path below the cache → SHA-256, of all files that came in by `models`."""
    try:
        text = (cache_folder() / SUMS).read_text("utf-8")
    except OSError:
        return {}
    return {found[2]: found[1] for line in text.splitlines() if (found := _LINE.fullmatch(line))}


def hash_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Errors: OSError."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def is_damaged(path: Path) -> bool:
    """Whether a file of the cache is another than the one that came in. One whose hash nobody has noted is not."""
    noted = recorded_hashes().get(path.relative_to(cache_folder()).as_posix())
    return noted is not None and noted != hash_of(path)


def cached_files() -> Iterator[Path]:
    """All files of the cache by their paths, without the notes."""
    folder = cache_folder()
    if folder.is_dir():
        yield from sorted(
            path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", SUMS))
        )


def store(path: Path, chunks: Iterable[bytes], expected: str = "") -> str:
    """Writes a file of the cache, which is there once all of it is; returns its SHA-256, which is noted.

    `expected`: its SHA-256, if known. Errors: InvalidInput for another hash, and for a file that is too large for a
    model; OSError. Whatever goes wrong, the file before stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        hashed, size = sha256(), 0
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                size += len(chunk)
                if size > limits.MODEL_FILE_BYTES:
                    raise InvalidInput(f"'{path}' would have more than {limits.MODEL_FILE_BYTES} bytes: no model has")
                hashed.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        digest = hashed.hexdigest()
        if expected and digest != expected.lower():
            raise InvalidInput(f"The SHA-256 is {digest}, and {expected.lower()} was expected: nothing was stored")
        Path(beside).chmod(0o644)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    _note(path, digest)
    return digest


def chunks_of(path: Path) -> Iterator[bytes]:
    """The content of a file. Errors: OSError."""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _note(path: Path, digest: str) -> None:
    noted = recorded_hashes() | {path.relative_to(cache_folder()).as_posix(): digest}
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(noted.items()))
    beside = cache_folder() / f".{SUMS}.{os.getpid()}"
    beside.write_text(text, "utf-8")
    beside.replace(cache_folder() / SUMS)
