"""Runs the notebook of the examples from top to bottom, by the Python that runs this.

`python -m tests.examples.notebook` stores what its cells give: what people see where it is not run.
The kernel, its files and its sockets are of this run alone, whatever is installed or runs beside it.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

FOLDER: Final = Path(__file__).parents[2] / "examples" / "notebook"
NOTEBOOK: Final = FOLDER / "search.ipynb"
_KERNEL: Final = "of-this-run"
_SECONDS: Final = 300
_STORED: Final = ("text/plain", "text/html")
"""The forms of outputs that are kept; what else there is holds states of programs."""
_VARYING: Final = re.compile(r"(?<=in )\d+\.\d+ s \(\d+/s\)|(?<= of )\d+(?= hits)")
"""Times; and how many documents were looked at, which the search for neighbours makes depend on their order."""


def read() -> Any:
    """The notebook as it is stored."""
    return nbformat.read(NOTEBOOK, as_version=4)


def run(notebook: Any) -> None:
    """Runs all cells, and puts in what they give. Errors: CellExecutionError for a cell that fails."""
    with tempfile.TemporaryDirectory(prefix="nb-") as folder:
        NotebookClient(
            notebook,
            km=_kernel(Path(folder)),
            timeout=_SECONDS,
            resources={"metadata": {"path": str(FOLDER)}},
            record_timing=False,
        ).execute(cleanup_kc=True)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.pop("execution_count", None) if output["output_type"] != "execute_result" else None
            if "data" in output:
                output["data"] = {form: text for form, text in output["data"].items() if form in _STORED}


def _kernel(folder: Path) -> AsyncKernelManager:
    """A kernel of this Python, which is asked through sockets in `folder` and writes nowhere else."""
    spec = folder / "kernels" / _KERNEL
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    described = {"argv": argv, "display_name": "Python 3", "env": {"IPYTHONDIR": str(folder / "ipython")}}
    (spec / "kernel.json").write_text(json.dumps(described))
    return AsyncKernelManager(
        kernel_name=_KERNEL,
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(spec.parent)], ensure_native_kernel=False),
        transport="ipc",
        ip=str(folder / "socket"),
        connection_file=str(folder / "connection.json"),
    )


def shown(cell: Any) -> list[str]:
    """What a cell gives, as text, without what differs from run to run."""
    texts = []
    for output in cell.get("outputs", ()):
        forms = output.get("data", {"text/plain": output.get("text", "")})
        texts += [f"{form}\n{_VARYING.sub('…', _joined(text))}" for form, text in sorted(forms.items())]
    return texts


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def store() -> None:
    """Writes the notebook with what its cells give, for the version of Python that runs this."""
    notebook = read()
    run(notebook)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "version": sys.version.split()[0]},
    }
    for cell in notebook.cells:
        cell.metadata = {}
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    store()
