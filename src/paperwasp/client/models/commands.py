"""`models list`, `fetch` and `add`: what they do, and the tables and bars that they print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from paperwasp.application.directory import load_package
from paperwasp.client.byte_bar import byte_bar
from paperwasp.client.models.cache import cached_files, chunks_of, is_damaged, recorded_hashes, store
from paperwasp.client.models.download import download
from paperwasp.client.models.hugging_face import check_blob, default_hub, files_of_hub, find_cached
from paperwasp.client.models.needed import NeededModel, needed_models
from paperwasp.components.embedders.model_files import PATH, cache_folder, cache_path
from paperwasp.components.embedders.model_ids import ADDRESSES
from paperwasp.errors import InvalidInput, NotFound, PaperwaspError


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
    attribute = _attribute_of(name)
    with _bar(f"Adding {source.name}", source.stat().st_size, console) as progress:
        path = _place(attribute, name)
        digest = store(path, progress(chunks_of(source)), expected)
    _say_stored(name, path, digest, console)


def _references(text: str) -> Iterator[tuple[str, str]]:
    """What one argument of `fetch` asks for, as attribute and value."""
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


def _attribute_of(name: str) -> str:
    return "url" if "://" in name else "model-id"


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
