"""Disks that lose what was not synced, fill up, and fail: `disk.cpp`, mounted."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("disk.cpp")
STEP_SECONDS: Final = 0.05


def build(folder: Path) -> Path:
    """Compiles the program. Errors: CalledProcessError, FileNotFoundError where there is no libfuse3 or compiler."""
    program = folder / "disk"
    flags = subprocess.check_output(["pkg-config", "--cflags", "--libs", "fuse3"], text=True).split()
    subprocess.run(["g++", "-std=c++20", "-O2", "-o", str(program), str(SOURCE), *flags], check=True)
    return program


@dataclass
class Disk:
    """A mounted disk. What is left of it after the cut is in `left`."""

    mount: Path
    left: Path
    process: subprocess.Popen[str]

    def cut(self) -> str:
        """The power goes. Gives what the disk says of it."""
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)  # a request that is under way may take the first one's effect
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STEP_SECONDS)
        assert self.process.returncode == 0 and self.process.stderr is not None, self.process.returncode
        return self.process.stderr.read().strip()

    def fail(self) -> None:
        """Half of all writes and syncs fail from now on, until this is called again."""
        self.process.send_signal(signal.SIGUSR2)


@contextlib.contextmanager
def mounted(program: Path, folder: Path, data: Path, seed: int, room: int | None = None) -> Iterator[Disk]:
    """A disk with what is in `data`, all of it durable, and room for `room` bytes more. At the end what is left after
    a cut takes the place of `data`; one that was not cut is as if it had never been there."""
    mount, left = folder / "mount", folder / "left"
    mount.mkdir(exist_ok=True)
    shutil.rmtree(left, ignore_errors=True)
    command = [str(program), str(mount), str(data), str(left), str(seed), *([] if room is None else [str(room)])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield Disk(mount, left, process)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            subprocess.run(["umount", "-l", str(mount)], stderr=subprocess.DEVNULL, check=False)
    if left.exists():
        shutil.rmtree(data)
        left.rename(data)
