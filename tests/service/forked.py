"""Commands in children of one process that has their code loaded, which is most of the time that a short one takes.

`python -m tests.service.forked` reads requests, a JSON object a line: the command's arguments, and a file for what it
says on either output. It answers each with the exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.children import ROOT


class Ended(NamedTuple):
    """The exit code of a command, and what it said on both outputs."""

    code: int
    said: str


@contextmanager
def forked_commands(folder: Path) -> Iterator[Callable[..., Ended]]:
    """A function that runs `paperwasp` with the arguments it is given, in a process of its own. The folder is for
    what is said."""
    program = [sys.executable, "-m", "tests.service.forked"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdin is not None and child.stdout is not None
        requests, answers = child.stdin, child.stdout

        def run(*arguments: object) -> Ended:
            output = folder / "said"
            requests.write(json.dumps({"arguments": [str(each) for each in arguments], "output": str(output)}) + "\n")
            requests.flush()
            return Ended(int(answers.readline()), output.read_text())

        try:
            yield run
        finally:
            requests.close()
            child.wait(30)


def main() -> None:
    import paperwasp
    import paperwasp.cli
    import paperwasp.server.process

    assert paperwasp.Service is not None and paperwasp.cli.command("serve")  # both are loaded when they are asked for
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.argv = ["paperwasp", *request["arguments"]]
            paperwasp.cli.main()
            return
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
