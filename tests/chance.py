"""The seed of random tests: the same in every run, unless the variable PAPERWASP_SEED names one or says `random`."""

from __future__ import annotations

import os
import random
from typing import Final

FIXED_SEED: Final = 20261122
_GIVEN: Final = os.environ.get("PAPERWASP_SEED", "")
SEED: Final = random.SystemRandom().randrange(1, 2**32) if _GIVEN == "random" else int(_GIVEN or FIXED_SEED)

# The processes that pytest-xdist starts must not draw seeds of their own.
os.environ["PAPERWASP_SEED"] = str(SEED)
