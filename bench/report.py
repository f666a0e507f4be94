"""What a benchmark reports: rows of one table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One line: the work, our figure, those of the peers, the target in words, whether it is met (None: none set)."""

    work: str
    ours: str
    peers: str = ""
    ratio: str = ""
    target: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        said = "" if self.met is None else "met" if self.met else "missed"
        return " · ".join(part for part in (self.work, self.ours, self.peers, self.ratio, self.target, said) if part)


@dataclass(frozen=True)
class Times:
    """CPU times of many queries, in nanoseconds."""

    nanoseconds: Sequence[int]

    @property
    def mean_us(self) -> float:
        return statistics.fmean(self.nanoseconds) / 1e3

    def quantile_us(self, part: float) -> float:
        ordered = sorted(self.nanoseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] / 1e3

    def __str__(self) -> str:
        return f"{self.mean_us:.0f} µs (p50 {self.quantile_us(0.5):.0f}, p99 {self.quantile_us(0.99):.0f})"


@dataclass
class Report:
    """Everything one run found, in order, with remarks that belong beside it.

    Where there is a console, each row is printed when it comes: a run of all benchmarks takes long, and one that is cut
    off has shown what it measured.
    """

    rows: list[Row] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    console: Console | None = None

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.say(str(row))

    def say(self, text: str) -> None:
        """Print what happens."""
        if self.console is not None:
            self.console.print(text, style="dim", highlight=False, markup=False, soft_wrap=True)

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    def fail(self, text: str) -> None:
        """A benchmark that could not be finished, or whose results were wrong."""
        self.failures.append(text)
        self.say(f"failed · {text}")

    def show(self) -> None:
        """Print the table, the remarks and the failures."""
        console = self.console or Console()
        table = Table("work", "ours", "peers", "ratio", "target", "met?", title="paperwasp beside its peers")
        for row in self.rows:
            table.add_row(row.work, row.ours, row.peers, row.ratio, row.target, _verdict(row.met))
        console.print(table)
        for remark in self.remarks:
            console.print(f"· {remark}", highlight=False, markup=False)
        for failure in self.failures:
            console.print(f"failed · {failure}", style="red", markup=False)


def _verdict(met: bool | None) -> str:
    return "" if met is None else "[green]yes[/]" if met else "[red]no[/]"
