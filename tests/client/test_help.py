"""What `--help` says: sentences that the terminal breaks, and examples that fit into its lines."""

from __future__ import annotations

import re

import pytest

from paperwasp.cli import app, help_of

NAMES = sorted(command.callback.__name__ for command in app.registered_commands if command.callback is not None)


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
