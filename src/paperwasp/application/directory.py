"""An application package in a folder on this machine, as `paperwasp serve APPLICATION` takes it.

The folder is found and read as the Vespa command line does before it uploads: the packaged form of a Maven project
first, and without what `.vespaignore` names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from paperwasp import limits
from paperwasp.application.archive import safe_path
from paperwasp.application.ignore import IGNORE_FILE, Ignored, parse_ignored
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.errors import UnreadablePackage


def load_package(path: Path) -> ApplicationPackage:
    """The package at `path`: an archive file, or a folder that holds one.

    Errors: UnreadablePackage where there is none, or it cannot be read.
    """
    if path.suffix == ".sd" and path.is_file():
        raise UnreadablePackage(
            f"'{path}' is a schema, not an application package: give the folder that has services.xml and schemas/"
        )
    try:
        return read_package(path.read_bytes()) if path.is_file() else read_directory(find_package(path))
    except OSError as error:
        raise UnreadablePackage(f"Could not read the application package in '{path}': {error.strerror}") from error


def find_package(path: Path) -> Path:
    """The folder of the package in `path`: of a Maven project, of its sources, or `path` itself."""
    if not path.exists():
        raise UnreadablePackage(f"Could not find an application package in '{path}': there is no such file or folder")
    candidates = [path / "src" / "main" / "application", path]
    if (path / "pom.xml").exists():
        candidates.insert(0, path / "target" / "application")
    for candidate in candidates:
        if (candidate / "services.xml").is_file():
            return candidate
    raise UnreadablePackage(f"Could not find an application package in '{path}': there is no services.xml")


def read_directory(folder: Path) -> ApplicationPackage:
    """Every file below `folder` that is not ignored. Links are followed only to files."""
    ignored = _read_ignored(folder)
    files: dict[str, bytes] = {}
    total_bytes = 0
    for path in _walk(folder, folder, ignored):
        name = safe_path(path.relative_to(folder).as_posix())
        total_bytes += path.stat().st_size
        if len(files) >= limits.PACKAGE_FILES or total_bytes > limits.PACKAGE_UNPACKED_BYTES:
            raise UnreadablePackage(
                f"The application package in '{folder}' is too large: at most {limits.PACKAGE_FILES} files of "
                f"{limits.PACKAGE_UNPACKED_BYTES} bytes together are allowed"
            )
        files[name] = path.read_bytes()
    return ApplicationPackage(MappingProxyType(files))


def _walk(root: Path, folder: Path, ignored: Ignored) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.relative_to(root).as_posix() in ignored or path.name == ".DS_Store":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(root, path, ignored)
        elif path.is_file():
            yield path


def _read_ignored(folder: Path) -> Ignored:
    path = folder / IGNORE_FILE
    return parse_ignored(path.read_text(errors="replace") if path.is_file() else "")
