"""What `--help` says: sentences that the terminal breaks, and examples that fit into its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from paperwasp.cli import app, help_of
from tests.client.commands import run_command

NAMES = sorted(command.callback.__name__ for command in app.registered_commands if command.callback is not None)


def _all_commands(command: Any, *words: str) -> Iterator[tuple[str, Any]]:
    yield " ".join(words), command
    for name, each in getattr(command, "commands", {}).items():
        yield from _all_commands(each, *words, name)


@pytest.mark.parametrize(("words", "command"), list(_all_commands(get_command(app))))
def test_every_name_of_an_option_is_whole_in_80_columns(words: str, command: Any) -> None:
    ran = run_command(*words.split(), "--help", environment={"COLUMNS": "80"})
    assert ran.code == 0 and [line for line in ran.out.splitlines() if len(line) > 80] == []
    names = [name for each in command.params for name in (*each.opts, *each.secondary_opts)]
    options = [name for name in names if name.startswith("-")]
    assert [name for name in options if not re.search(rf"(?<![\w-]){name}(?![\w…-])", ran.out)] == []


def test_lines_are_joined_within_sentences_alone() -> None:
    def command() -> None:
        """Does
        this.

        It goes on
        here. And on.
        A line of its own:
        the last
        one

            paperwasp it
            paperwasp that
        """

    said = "Does this.\n\nIt goes on here. And on.\nA line of its own:\nthe last one\n\n"
    assert help_of(command) == said + "    paperwasp it\n    paperwasp that"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_says_what_it_does_in_a_sentence_and_its_examples_are_short(name: str) -> None:
    (command,) = (
        each for each in app.registered_commands if each.callback is not None and each.callback.__name__ == name
    )
    assert command.help is not None
    first, *rest = command.help.split("\n\n")
    assert re.fullmatch(r"[A-Z][^\n]*\.", first)
    assert not rest or not rest[0].startswith(" "), "an example that comes first loses its indentation"
    assert [line for text in rest if text.startswith(" ") for line in text.splitlines() if len(line) > 92] == []
