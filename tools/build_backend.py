"""The build backend of paperwasp: scikit-build-core, after two things that a bare machine may lack.

A C++ compiler: where there is none, the one in PyPI's `ziglang` is used, by small programs that CMake and setuptools
can call. The Krovetz stemmer: `krovetzstemmer` is published as source alone, so that whoever installs it needs a
compiler. Its compiled module goes into the wheel of paperwasp (`paperwasp/text/linguistics/`), and whoever installs
that wheel needs none. Its version is exact because stems are on disk.

Interface: https://peps.python.org/pep-0517/
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from scikit_build_core import build as inner

STEMMER = "krovetzstemmer"
STEMMER_REQUIREMENT = "krovetzstemmer==0.8"
BUILD = Path(__file__).parent.parent / "build"

build_sdist = inner.build_sdist
get_requires_for_build_sdist = inner.get_requires_for_build_sdist
prepare_metadata_for_build_wheel = inner.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = inner.prepare_metadata_for_build_editable


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What pip installs before it builds: the stemmer, or what makes it where pip itself finds no compiler."""
    missing = [STEMMER_REQUIREMENT] if find_compiler() else ["pip", "ziglang"]
    return [*inner.get_requires_for_build_wheel(config_settings), *missing]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build a wheel into `directory`; return its file name."""
    provide_compiler()
    provide_stemmer()
    return inner.build_wheel(directory, config_settings, metadata_directory)


def build_editable(directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build a wheel that points to the sources into `directory`; return its file name."""
    provide_compiler()
    provide_stemmer()
    return inner.build_editable(directory, config_settings, metadata_directory)


def find_compiler() -> str | None:
    """The path of the C++ compiler that CMake would use."""
    return shutil.which(os.environ.get("CXX") or "c++")


def provide_compiler() -> None:
    """Where the machine has no C++ compiler, make programs of zig's commands and name them in the environment."""
    if find_compiler():
        return
    package = importlib.util.find_spec("ziglang")
    if package is None or package.origin is None:
        raise RuntimeError("no C++ compiler: install one, name it in CXX, or install the package ziglang")
    zig = Path(package.origin).with_name("zig")
    folder = BUILD / "zig"
    folder.mkdir(parents=True, exist_ok=True)
    for command in ("c++", "ar", "ranlib"):
        program = folder / f"zig-{command}"
        program.write_text(f'#!/bin/sh\nexec "{zig}" {command} "$@"\n')
        program.chmod(0o755)
    os.environ["CC"] = os.environ["CXX"] = str(folder / "zig-c++")
    os.environ["AR"] = str(folder / "zig-ar")
    add_cmake_arguments(f"-DCMAKE_AR={folder}/zig-ar", f"-DCMAKE_RANLIB={folder}/zig-ranlib")


def provide_stemmer() -> None:
    """Give CMake the path of the stemmer's compiled module, which pip builds first if this environment has none."""
    folder = BUILD / f"{STEMMER}-{sys.implementation.cache_tag}"
    sys.path.append(str(folder))
    if importlib.util.find_spec(STEMMER) is None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        # What pip tells this backend by variables is not meant for that of the stemmer.
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("_PYPROJECT_HOOKS_", "PEP517_"))
        }
        subprocess.run([*command, STEMMER_REQUIREMENT], check=True, env=kept)
        importlib.invalidate_caches()
    found = importlib.util.find_spec(STEMMER)
    if found is None or found.origin is None:
        raise RuntimeError(f"{STEMMER_REQUIREMENT} was installed but cannot be found in {folder}")
    add_cmake_arguments(f"-DPAPERWASP_STEMMER={found.origin}")


def add_cmake_arguments(*arguments: str) -> None:
    """Append arguments to those that the environment gives to CMake."""
    os.environ["CMAKE_ARGS"] = " ".join([os.environ.get("CMAKE_ARGS", ""), *arguments]).strip()
