"""Secrets that services.xml refers to by a name: the keys of services that models run on.

A secret is the content of the file of its name in the folder that PAPERWASP_SECRETS names, else the value of the
environment variable PAPERWASP_SECRET_<NAME>, the name in capitals, with `_` for everything but letters and digits. It
is looked up at each use, so that a new key holds without a deployment, and is never part of a package, a log or a
message.

Differs: Vespa has secrets in the store of its cloud alone: https://docs.vespa.ai/en/security/secret-store
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.errors import Unavailable

FOLDER_VARIABLE: Final = "PAPERWASP_SECRETS"
_VARIABLE_PREFIX: Final = "PAPERWASP_SECRET_"
_NAME: Final = compile_later(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


def find_secret(name: str) -> str | None:
    """The secret of that name, without white space around it; None: there is none."""
    if not _NAME.fullmatch(name):
        return None
    return _in_file(name).strip() or os.environ.get(variable_of(name), "").strip() or None


def secret(name: str) -> str:
    """The secret of that name. Errors: Unavailable that says where one is looked for."""
    found = find_secret(name)
    if found is None:
        where = f"a file of that name in the folder {FOLDER_VARIABLE} names, or the variable {variable_of(name)}"
        raise Unavailable(f"There is no secret '{name}': it would be {where}")
    return found


def variable_of(name: str) -> str:
    """The environment variable that a secret may be in."""
    return _VARIABLE_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def _in_file(name: str) -> str:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return ""
    try:
        with Path(folder, name).open(encoding="utf-8") as file:
            return file.read(limits.SECRET_CHARACTERS)
    except (OSError, UnicodeDecodeError):
        return ""
