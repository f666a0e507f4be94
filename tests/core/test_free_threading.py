"""The core says of all that it keeps which threads may use it: Python may have no lock that would see to it.

Authority: Python's documentation of free-threaded builds, "Isolating extension modules".
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src" / "paperwasp" / "core"
TEXTS = {path.name: path.read_text() for path in sorted(CORE.rglob("*.?pp"))}
BOUND = sorted({name for text in TEXTS.values() for name in re.findall(r"nb::class_<(\w+)>", text)})
SAYS = re.compile(r"Threads:|[Ii]mmutable|[Aa]ny thread|never changes|thread writes at a time")
WORKS_BESIDE = re.compile(r"std::(?:mutex|atomic|thread)\b|\b__atomic_(?:load|store)")
SHARED = re.compile(
    r"^(?!using|return|constexpr|const |typedef|thread_local|extern|friend|enum|struct|class|namespace|template)"
    r"[a-z][\w:<>,*]*(?: [\w:<>,*]+)* \w+(?:\[\w+\])?(?: = [^;(]+)?;",
    re.MULTILINE,
)


def _home(name: str) -> str:
    """The text of the file that declares a class."""
    declared = re.compile(rf"^(?:class|struct) {name}\b(?! *;)", re.MULTILINE)
    (found,) = [text for text in TEXTS.values() if declared.search(text)]
    return found


@pytest.mark.parametrize("name", BOUND)
def test_a_class_says_which_threads_may_use_it(name: str) -> None:
    comments = "\n".join(re.findall(r"^ *//.*", _home(name), re.MULTILINE))
    assert SAYS.search(comments), f"nothing is said of threads where {name} is declared"


@pytest.mark.parametrize("name", sorted(name for name, text in TEXTS.items() if WORKS_BESIDE.search(text)))
def test_a_file_with_locks_or_atomics_says_for_which_threads(name: str) -> None:
    """In its head, or in that of the header of the same name."""
    header = TEXTS.get(name.replace(".cpp", ".hpp"), "")
    assert any(SAYS.search("\n".join(re.findall(r"^ *//.*", text, re.MULTILINE))) for text in (TEXTS[name], header))


def test_what_a_module_keeps_of_its_own_is_said() -> None:
    """Variables of a file, which all threads share."""
    found = {name for name, text in TEXTS.items() if SHARED.search(text)}
    assert found == {"object_memory.cpp"}, "it needs a lock, or a reason here"
    assert "Threads:" in TEXTS["object_memory.cpp"]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has its lock for good")
def test_the_core_leaves_the_lock_off() -> None:
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined, unused-ignore]
