"""The clients are driven against the same child process as the tests of the service: its helpers are found there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "service"))
