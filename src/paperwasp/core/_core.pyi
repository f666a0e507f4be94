# The compiled kernels. What each takes and gives is written in its C++ file, and typed where Python calls it.
from typing import Any

def __getattr__(name: str) -> Any: ...
