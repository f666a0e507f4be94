"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

DEFAULT_DATA: Final = Path("paperwasp-data")
CONTAINER: Final = "http://127.0.0.1:8080"
CONFIG: Final = "http://127.0.0.1:19071"

ContainerUrl = Annotated[str, typer.Option("--url", "-u", help="Where the container listens.", envvar="PAPERWASP_URL")]
ConfigUrl = Annotated[
    str, typer.Option("--config-url", help="Where the config server listens.", envvar="PAPERWASP_CONFIG_URL")
]
AllowPython = Annotated[
    bool,
    typer.Option(
        "--allow-python-components",
        help="Run components that are written in Python and come with an application: they may do whatever you may.",
    ),
]
