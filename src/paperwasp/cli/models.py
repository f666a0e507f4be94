"""The command `models`: which models a package needs, and how they come into the model cache of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from paperwasp.cli.options import Command

models: Final = typer.Typer(
    help="List, fetch and add the models of embedders that packages name by address or id.\n\n"
    "The service fetches nothing by itself: it reads the model cache, the folder of PAPERWASP_MODEL_CACHE or else "
    "~/.cache/paperwasp/models.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)


@models.command("list", cls=Command)
def show(
    application: Annotated[
        Path | None, typer.Argument(help="An application package; without one, what the cache has is listed.")
    ] = None,
) -> None:
    """List the models that a package needs and where each is, or the files of the cache and their hashes.

    The exit status is 1 where one is missing or damaged.
    """
    from rich.console import Console

    from paperwasp.authoring.model_cache import list_cached, list_needed

    if not (
        list_cached(Console(emoji=False)) if application is None else list_needed(application, Console(emoji=False))
    ):
        raise typer.Exit(1)


@models.command(cls=Command)
def fetch(
    what: Annotated[
        list[str], typer.Argument(help="Application packages, addresses (https://…) or model ids such as e5-small-v2.")
    ],
) -> None:
    """Bring models into the cache: of all that packages name, or single ones.

    What Hugging Face's own cache has is taken from there, without a network; all else comes from its address.
    Hashes are checked where they are known, and kept in SHA256SUMS of the cache.
    A service that is running finds what has come when the model is next used.
    """
    from rich.console import Console

    from paperwasp.authoring.model_cache import fetch

    if not fetch(what, Console(emoji=False)):
        raise typer.Exit(1)


@models.command(cls=Command)
def add(
    source: Annotated[
        Path, typer.Argument(help="A file, or a cache of Hugging Face such as ~/.cache/huggingface/hub.")
    ],
    name: Annotated[
        str, typer.Option("--as", metavar="NAME", help="The address or model id by which packages name the file.")
    ] = "",
    sha256: Annotated[str, typer.Option("--sha256", help="Its hash; a file with another is refused.")] = "",
) -> None:
    """Take over a file into the cache, or all models of a cache of Hugging Face. Symbolic links are followed.

        paperwasp models add model.onnx --as https://host/model.onnx

    makes the file the one that a package names by that address.
    """
    from rich.console import Console

    from paperwasp.authoring.model_cache import add

    add(source, name, sha256, Console(emoji=False))
