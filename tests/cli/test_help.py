"""What `--help` says: sentences that the terminal breaks, and examples that fit into its lines."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from paperwasp.cli import NAMES, app, command, help_of
from tests.client.commands import run_command


def _all_commands(made: Any, *words: str) -> Iterator[tuple[str, Any]]:
    yield " ".join(words), made
    for name, each in getattr(made, "commands", {}).items():
        yield from _all_commands(each, *words, name)


@pytest.mark.parametrize(("words", "made"), list(_all_commands(get_command(app))))
def test_every_name_of_an_option_is_whole_in_80_columns(words: str, made: Any) -> None:
    ran = run_command(*words.split(), "--help", environment={"COLUMNS": "80"})
    assert ran.code == 0 and [line for line in ran.out.splitlines() if len(line) > 80] == []
    names = [name for each in made.params for name in (*each.opts, *each.secondary_opts)]
    options = [name for name in names if name.startswith("-")]
    assert [name for name in options if not re.search(rf"(?<![\w-]){name}(?![\w…-])", ran.out)] == []


def test_lines_are_joined_within_sentences_alone() -> None:
    def does() -> None:
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
    assert help_of(does) == said + "    paperwasp it\n    paperwasp that"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_says_what_it_does_in_a_sentence_and_its_examples_are_short(name: str) -> None:
    first, *rest = command(name).help.split("\n\n")
    assert re.fullmatch(r"[A-Z][^\n]*\.", first)
    assert not rest or not rest[0].startswith(" "), "an example that comes first loses its indentation"
    assert [line for text in rest if text.startswith(" ") for line in text.splitlines() if len(line) > 92] == []


def test_the_help_of_all_has_every_command_and_a_command_imports_no_other() -> None:
    shown = run_command("--help").out
    assert [name for name in NAMES if not re.search(rf"^│ {name} +[A-Z]", shown, re.MULTILINE)] == []
    ran = run_command("fed")
    assert ran.code == 2 and "Did you mean 'feed'?" in ran.err
    program = (
        "import sys\nfrom paperwasp.cli import main\nsys.argv = ['paperwasp', 'status', '--help']\n"
        "try:\n    main()\nfinally:\n    print(*(name for name in sys.modules if name.startswith('paperwasp.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = done.stdout.splitlines()[-1].replace("paperwasp.cli.", "").split()
    assert [name for name in NAMES if name in loaded] == ["deploy"], "status is in the module of deploy"
