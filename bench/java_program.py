"""A Java program of the benchmarks: Maven fetches what it needs and compiles it, and it runs as a process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class NotInstalled(Exception):
    """There is no Java or no Maven: this peer is left out."""


@dataclass(frozen=True)
class JavaProgram:
    """A folder with a pom.xml and a class Main, compiled into bench/.cache when it is first needed, and after a change.

    `name` is the peer's; `built` is the folder that the pom.xml builds in.
    """

    name: str
    sources: Path
    built: Path

    def command(self, *arguments: str, java: Sequence[str] = ()) -> list[str]:
        """Runs the program, with these options of `java`. Errors: NotInstalled."""
        missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
        if missing:
            raise NotInstalled(f"{self.name} is left out: there is no {' and no '.join(missing)}")
        marker = self.built / ".built"
        newest = max(path.stat().st_mtime for path in self.sources.rglob("*.*"))
        if not marker.exists() or marker.stat().st_mtime < newest:
            goals = ["compile", "dependency:copy-dependencies"]
            subprocess.run(["mvn", "-B", "-q", "-f", str(self.sources / "pom.xml"), *goals], check=True)
            marker.touch()
        path = os.pathsep.join((str(self.built / "classes"), f"{self.built / 'dependency'}/*"))
        return ["java", *java, "-cp", path, "Main", *arguments]
