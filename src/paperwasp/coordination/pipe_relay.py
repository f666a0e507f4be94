"""The process that a `PipeMessenger` sends its messages through: it gives on each parcel that it has read whole.

python -m paperwasp.coordination.pipe_relay
"""

from __future__ import annotations

import signal
from io import FileIO

from paperwasp.coordination.pipes import LENGTH, read_parcel, write_all


def relay() -> None:
    """Gives on what comes, until nothing more does. Signals are for whoever has started it: its end ends this."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    source, target = FileIO(0, "rb"), FileIO(1, "wb")
    while (parcel := read_parcel(source)) is not None:
        write_all(target, LENGTH.pack(len(parcel)) + parcel)


if __name__ == "__main__":
    relay()
