"""Changing the files of a session before it is activated: each edit is a function from a package to a package.

An archive has no empty folders, so those that a client made are kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from paperwasp import limits
from paperwasp.application.package import ApplicationPackage, safe_path
from paperwasp.base.file_contents import FileContents, OnDisk, held_contents, total_bytes
from paperwasp.errors import InvalidInput, NotFound, TooLarge

Directories = tuple[str, ...]
Edit = Callable[[ApplicationPackage, Directories], tuple[ApplicationPackage, Directories]]


def put_file(path: str, content: bytes) -> Edit:
    """Writes a file, in folders that need not be there. Errors: UnreadablePackage for a path that leads outside."""

    def edit(package: ApplicationPackage, directories: Directories) -> tuple[ApplicationPackage, Directories]:
        name = safe_path(path)
        if is_directory(package, directories, name):
            raise InvalidInput(f"'{name}' is a directory")
        _check_folders(package, name)
        return _make_package({**held_contents(package.files), name: content}, directories)

    return edit


def put_directory(path: str) -> Edit:
    """Makes a folder; one that is there is no error."""

    def edit(package: ApplicationPackage, directories: Directories) -> tuple[ApplicationPackage, Directories]:
        name = safe_path(path)
        _check_folders(package, name + "/")
        return _make_package(held_contents(package.files), tuple(sorted({*directories, name})))

    return edit


def delete(path: str) -> Edit:
    """Removes a file, or a folder in which there is nothing. Errors: NotFound, InvalidInput if there is something."""

    def edit(package: ApplicationPackage, directories: Directories) -> tuple[ApplicationPackage, Directories]:
        name = path.removesuffix("/")
        if name in package.files and not path.endswith("/"):
            files = {other: content for other, content in held_contents(package.files).items() if other != name}
            return _make_package(files, _with_parent(directories, name))
        if not is_directory(package, directories, name):
            raise NotFound(f"The session does not contain a file at '{path}'")
        below = (other for other in (*package.files, *directories) if other.startswith(name + "/"))
        if not name or any(below):
            raise InvalidInput(f"File '{path}' is not an empty directory")
        return package, _with_parent(tuple(other for other in directories if other != name), name)

    return edit


def is_directory(package: ApplicationPackage, directories: Directories, name: str) -> bool:
    """Whether there is a folder of that name; the package itself is one, without a name."""
    return not name or name in directories or any(f.startswith(name + "/") for f in (*package.files, *directories))


def _with_parent(directories: Directories, name: str) -> Directories:
    """The folder stays that something is removed from."""
    parent = str(PurePosixPath(name).parent)
    return directories if parent == "." else tuple(sorted({*directories, parent}))


def _check_folders(package: ApplicationPackage, path: str) -> None:
    """Errors: InvalidInput where a folder of the path is a file."""
    for folder in (path.removesuffix("/") if path.endswith("/") else "", *map(str, PurePosixPath(path).parents)):
        if folder in package.files:
            raise InvalidInput(f"'{folder}' is a file")


def _make_package(
    files: Mapping[str, bytes | OnDisk], directories: Directories
) -> tuple[ApplicationPackage, Directories]:
    contents = FileContents(dict(files))
    if len(files) + len(directories) > limits.PACKAGE_FILES or total_bytes(contents) > limits.PACKAGE_UNPACKED_BYTES:
        most = f"{limits.PACKAGE_FILES} files of {limits.PACKAGE_UNPACKED_BYTES} bytes together"
        raise TooLarge(f"An application package has at most {most}")
    return ApplicationPackage(contents), directories
