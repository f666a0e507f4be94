"""An application package in a folder on this machine, as `paperwasp serve APPLICATION` takes it.

The folder is found and read as the Vespa command line does before it uploads: the packaged form of a Maven project
first, and without what `.vespaignore` names.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Final

from paperwasp import limits
from paperwasp.application.archive import safe_path
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.errors import UnreadablePackage

_IGNORE_FILE: Final = ".vespaignore"


def load_package(path: Path) -> ApplicationPackage:
    """The package at `path`: an archive file, or a folder that holds one.

    Errors: UnreadablePackage where there is none, or it cannot be read.
    """
    try:
        return read_package(path.read_bytes()) if path.is_file() else read_directory(find_package(path))
    except OSError as error:
        raise UnreadablePackage(f"Could not read the application package in '{path}': {error.strerror}") from error


def find_package(path: Path) -> Path:
    """The folder of the package in `path`: of a Maven project, of its sources, or `path` itself."""
    candidates = [path / "src" / "main" / "application", path]
    if (path / "pom.xml").exists():
        candidates.insert(0, path / "target" / "application")
    for candidate in candidates:
        if (candidate / "services.xml").is_file():
            return candidate
    raise UnreadablePackage(f"Could not find an application package in '{path}': there is no services.xml")


def read_directory(folder: Path) -> ApplicationPackage:
    """Every file below `folder` that is not ignored. Links are followed only to files."""
    patterns = _patterns(folder)
    files: dict[str, bytes] = {}
    total_bytes = 0
    for path in _walk(folder, folder, patterns):
        name = safe_path(path.relative_to(folder).as_posix())
        total_bytes += path.stat().st_size
        if len(files) >= limits.PACKAGE_FILES or total_bytes > limits.PACKAGE_UNPACKED_BYTES:
            raise UnreadablePackage(
                f"The application package in '{folder}' is too large: at most {limits.PACKAGE_FILES} files of "
                f"{limits.PACKAGE_UNPACKED_BYTES} bytes together are allowed"
            )
        files[name] = path.read_bytes()
    return ApplicationPackage(MappingProxyType(files))


def _walk(root: Path, folder: Path, patterns: list[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        name = path.relative_to(root).as_posix()
        if _ignored(name, patterns) or path.name == ".DS_Store":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(root, path, patterns)
        elif path.is_file():
            yield path


def _patterns(folder: Path) -> list[str]:
    """The lines of the ignore file that are neither empty nor comments."""
    path = folder / _IGNORE_FILE
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _ignored(name: str, patterns: list[str]) -> bool:
    """A pattern fits the whole path, `*` stopping at a slash; one that ends in `/` fits all that is below it."""
    return any(_fits(name, pattern) or (pattern.endswith("/") and name.startswith(pattern)) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    segments, wanted = name.split("/"), pattern.split("/")
    return len(segments) == len(wanted) and all(map(fnmatchcase, segments, wanted))
