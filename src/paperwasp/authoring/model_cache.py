"""The command `models`: which models a package needs, and how they come into the model cache of this machine."""

from __future__ import annotations

import http.client
import os
import ssl
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from paperwasp import limits
from paperwasp.application.package import load_package
from paperwasp.authoring.hugging_face import check_blob, default_hub, files_of_hub, find_cached
from paperwasp.authoring.needed_models import NeededModel, needed_models
from paperwasp.base.patterns import compile_later
from paperwasp.base.version import VERSION
from paperwasp.client.terminal import byte_bar
from paperwasp.components.embedders.model_files import PATH, cache_folder, cache_path
from paperwasp.errors import InvalidInput, NotFound, PaperwaspError
from paperwasp.limits.remote import MODEL_TIMEOUT_SECONDS

# The ids by which Vespa Cloud's packages name models, and the public address of each model.
#
# Vespa: ModelIdResolver.java (config-model), as of November 2026. Outside of Vespa Cloud Vespa refuses a `model-id`
# without `path` or `url`; here the file is looked for in the model cache, and `paperwasp models fetch` brings it there.


_HOST: Final = "https://data.vespa-cloud.com"
_TRANSFORMERS: Final = (
    "multilingual-e5-base",
    "multilingual-e5-small",
    "multilingual-e5-small-cpu-friendly",
    "e5-small-v2",
    "e5-small-v2-cpu-friendly",
    "e5-base-v2",
    "e5-large-v2",
)
"""Each has a model of its name, and the tokenizer of it under its name with `-vocab`."""
_OTHERS: Final = {
    "minilm-l6-v2": "onnx_models/sentence_all_MiniLM_L6_v2.onnx",
    "mpnet-base-v2": "onnx_models/sentence-all-mpnet-base-v2.onnx",
    "bert-base-uncased": "onnx_models/bert-base-uncased-vocab.txt",
    "flan-t5-vocab": "onnx_models/flan-t5-spiece.model",
    "mistral-7b": "gguf_models/mistral-7b-instruct-v0.1.Q6_K.gguf",
    "mistral-7b-q8": "gguf_models/mistral-7b-instruct-v0.1.Q8_0.gguf",
    "phi-3.5-mini-q4": "gguf_models/Phi-3.5-mini-instruct-Q4_K_M.gguf",
    "significance-en-wikipedia-v1": "significance_models/significance-en-wikipedia-v1.json.zst",
}
_T5: Final = tuple(f"flan-t5-{size}-{half}" for size in ("small", "base", "large") for half in ("encoder", "decoder"))

ADDRESSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name: f"{_HOST}/{path}" for name, path in _OTHERS.items()},
        **{name: f"{_HOST}/onnx_models/{name}-model.onnx" for name in _T5},
        **{name: f"{_HOST}/onnx_models/{name}/model.onnx" for name in _TRANSFORMERS},
        **{f"{name}-vocab": f"{_HOST}/onnx_models/{name}/tokenizer.json" for name in _TRANSFORMERS},
    }
)
"""Id → where the file is."""


# The model cache as the command `models` sees it: files, each written whole and with its hash kept beside all.
#
# The file SHA256SUMS of the folder has a line for each file that this command brought, as `sha256sum --check` reads it.


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


# Brings the file at an address, in pieces, with the SHA-256 that its host says where it does.


_LINKED: Final = "X-Linked-Etag"
"""Hugging Face's header with the SHA-256 of a large file; it comes with the redirection to where the file is."""
_SHA256: Final = compile_later(r'"?([0-9a-f]{64})"?')


class Download(Struct, frozen=True):
    """A file that is coming."""

    chunks: Iterator[bytes]
    total_bytes: int | None
    """None: the host does not say."""
    sha256: str
    """Empty: the host does not say."""


@contextmanager
def download(address: str) -> Iterator[Download]:
    """Opens what is at an address. Errors: InvalidInput with what went wrong, also while it is read."""
    if urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).hostname:
        raise InvalidInput(f"'{address}' is not an address like https://host/model.onnx")
    redirections = _Redirections()
    opener = urllib.request.build_opener(redirections)
    request = urllib.request.Request(address, headers={"User-Agent": f"paperwasp/{VERSION}"})
    try:
        with opener.open(request, timeout=MODEL_TIMEOUT_SECONDS) as answer:
            said = answer.headers.get("Content-Length")
            total = int(said) if said and said.isdecimal() else None
            linked = answer.headers.get(_LINKED) or redirections.linked
            found = _SHA256.fullmatch(linked or "")
            yield Download(_chunks(answer, total), total, found[1] if found else "")
    except urllib.error.HTTPError as error:
        raise InvalidInput(f"{address} answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise InvalidInput(f"{address} cannot be fetched: {reason}") from None


def _chunks(answer: Any, total: int | None) -> Iterator[bytes]:
    size = 0
    while chunk := answer.read(_CHUNK_BYTES):
        size += len(chunk)
        yield chunk
    if total is not None and size != total:
        raise InvalidInput(f"The connection broke off after {size} of {total} bytes: nothing was stored")


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but not from HTTPS to HTTP, and remembers the hash that one of them says."""

    linked = ""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        self.linked = headers.get(_LINKED) or self.linked
        if urlsplit(newurl).scheme not in ("https", req.type):
            raise InvalidInput(f"{req.full_url} leads to '{newurl}', which is less safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def list_needed(application: Path, console: Console) -> bool:
    """Prints the models that a package needs, and where each is. Returns whether all are there."""
    needed = needed_models(load_package(application))
    if not needed:
        console.print(f"'{application}' needs no models", highlight=False, markup=False)
        return True
    table = Table("Component", "Element", Column("Model", overflow="fold"), "State", box=None, pad_edge=False)
    states = [_state(each) for each in needed]
    for each, (state, is_there) in zip(needed, states, strict=True):
        model = f"{each.attribute} {escape(each.name)}"
        table.add_row(escape(each.component), each.setting, model, state if is_there else f"[bold red]{state}[/]")
    console.print(table)
    missing = sum(not is_there for _, is_there in states)
    if missing:
        hint = f"`paperwasp models fetch {application}` brings those with addresses"
        text = f"{missing} of {len(needed)} models missing: {hint}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    return not missing


def list_cached(console: Console) -> bool:
    """Prints the files of the model cache. Returns whether none is damaged."""
    table = Table(Column("File", overflow="fold"), "Size", "SHA-256", box=None, pad_edge=False)
    noted = recorded_hashes()
    sound = True
    for path in cached_files():
        name = path.relative_to(cache_folder()).as_posix()
        damaged = is_damaged(path)
        sound = sound and not damaged
        state = "[bold red]damaged[/]" if damaged else noted.get(name, "not noted")[:16]
        table.add_row(escape(name), _size(path.stat().st_size), state)
    console.print(f"Model cache: {cache_folder()}", highlight=False, markup=False, soft_wrap=True)
    if table.row_count:
        console.print(table)
    else:
        hint = "`paperwasp models list APPLICATION` says what a package needs"
        console.print(f"No models are there; {hint}", highlight=False, markup=False, soft_wrap=True)
    return sound


def fetch(wanted: Iterable[str], console: Console) -> bool:
    """Brings the models of packages, of addresses and of model ids into the cache, where they are not there yet.

    Goes on behind what fails. Returns whether all are there in the end. Errors: UnreadablePackage, InvalidPackage.
    """
    complete = True
    for attribute, name in dict.fromkeys(each for text in wanted for each in _references(text)):
        try:
            _fetch(attribute, name, console)
        except (PaperwaspError, OSError) as error:
            said = error.message if isinstance(error, PaperwaspError) else str(error)
            console.print(f"[bold red]Failed[/]: {escape(said)}", highlight=False, soft_wrap=True)
            hint = f"Where you have the file, `paperwasp models add FILE --as {name}` takes it over"
            console.print(hint, highlight=False, markup=False, soft_wrap=True)
            complete = False
    return complete


def add(source: Path, name: str, expected: str, console: Console) -> None:
    """Takes a file over into the cache as an address or a model id; or a whole cache of Hugging Face.

    Errors: InvalidInput; NotFound; OSError.
    """
    if source.is_dir():
        if name or expected:
            raise InvalidInput("--as and --sha256 go with a file, and a folder is a cache of Hugging Face")
        for each in files_of_hub(source):
            _take_over(each.path, "url", each.address, console)
        return
    if not source.is_file():
        raise NotFound(f"There is no file '{source}'")
    if not name:
        raise InvalidInput("--as NAME is needed: the address or the model id by which packages name the file")
    attribute = "url" if "://" in name else "model-id"
    with _bar(f"Adding {source.name}", source.stat().st_size, console) as progress:
        path = _place(attribute, name)
        digest = store(path, progress(chunks_of(source)), expected)
    _say_stored(name, path, digest, console)


def _references(text: str) -> Iterator[tuple[str, str]]:
    """Read one argument of `fetch`, as pairs of attribute and value."""
    if "://" in text:
        yield "url", text
    elif text in ADDRESSES and not Path(text).exists():
        yield "model-id", text
    else:
        package = needed_models(load_package(Path(text)))
        yield from ((each.attribute, each.name) for each in package if each.attribute != PATH)


def _fetch(attribute: str, name: str, console: Console) -> None:
    path = _place(attribute, name)
    if path.is_file() and not is_damaged(path):
        console.print(f"{name}: is there", highlight=False, markup=False, soft_wrap=True)
        return
    address = name if attribute == "url" else ADDRESSES.get(name)
    if address is None:
        raise InvalidInput(f"model-id '{name}' has no known address, as have {', '.join(sorted(ADDRESSES))}")
    if (found := find_cached(address, default_hub())) is not None:
        _take_over(found, attribute, name, console)
        return
    with download(address) as coming, _bar(f"Fetching {path.name}", coming.total_bytes, console) as progress:
        digest = store(path, progress(coming.chunks), coming.sha256)
    _say_stored(name, path, digest, console)


def _take_over(source: Path, attribute: str, name: str, console: Console) -> None:
    check_blob(source)
    path = _place(attribute, name)
    _say_stored(name, path, store(path, chunks_of(source)), console)


def _place(attribute: str, name: str) -> Path:
    try:
        return cache_path(attribute, name)
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def _state(model: NeededModel) -> tuple[str, bool]:
    """Where a model is, and whether it is anywhere."""
    if model.attribute == PATH:
        return ("in the package", True) if model.is_in_package else ("not in the package", False)
    try:
        path = cache_path(model.attribute, model.name)
    except ValueError:
        return "no name of a file", False
    if not path.is_file():
        return "missing", False
    if not path.resolve().is_relative_to(cache_folder().resolve()):
        return "a link out of the cache", False
    if is_damaged(path):
        return "damaged", False
    return f"in the cache, {_size(path.stat().st_size)}", True


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 100_000 else f"{size_bytes} bytes"


def _say_stored(name: str, path: Path, digest: str, console: Console) -> None:
    text = f"{name}: {_size(path.stat().st_size)} in '{path}', SHA-256 {digest}"
    console.print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def _bar(
    what: str, total_bytes: int | None, console: Console
) -> Iterator[Callable[[Iterable[bytes]], Iterator[bytes]]]:
    """A bar that goes on as pieces are read through what it yields."""
    with byte_bar(what, total_bytes, console, transient=True) as note:

        def watched(chunks: Iterable[bytes]) -> Iterator[bytes]:
            for chunk in chunks:
                note(len(chunk))
                yield chunk

        yield watched
