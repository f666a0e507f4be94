"""What `--help` of a command prints: names of options are whole in a terminal of any width, so that they can be typed.

Typer gives each option a row of narrow columns and cuts what does not fit them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperCommand

if TYPE_CHECKING:
    from rich.console import Group

_NAMES_WIDTH: Final = 28
"""Names that are longer stand on a line of their own, above their help."""
_INDENT: Final = 4


class Command(TyperCommand):
    """A command whose help has a panel for each group of options."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help."""
        from rich.console import Console
        from rich.padding import Padding
        from rich.panel import Panel
        from rich.text import Text

        console = Console(highlight=False)
        console.print(Padding(Text(self.get_usage(ctx), "bold"), 1))
        console.print(Padding(Text.from_markup(self.help or ""), (0, 1, 1, 1)))
        panels: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if each.param_type_name == "argument" else "Options"
                panels.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(record)
        for title in sorted(panels, key=["Arguments", "Options", *panels].index):
            console.print(Panel(_rows(panels[title]), title=title, title_align="left", border_style="dim"))


def _rows(records: list[tuple[str, str]]) -> Group:
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    parts: list[Table | Text | Padding] = []
    for names, said in records:
        shown = Text(names.removeprefix(" / "), "bold cyan")
        if len(names) > _NAMES_WIDTH:
            parts += [shown, Padding(Text(said), (0, 0, 0, _INDENT))]
        else:
            table = Table.grid(padding=(0, 2))
            table.add_column(width=_NAMES_WIDTH)
            table.add_column()
            table.add_row(shown, Text(said))
            parts.append(table)
    return Group(*parts)
