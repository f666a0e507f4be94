"""The limits of models that are called over HTTP. `limits` has them, too. Units last in the name."""

from __future__ import annotations

from typing import Final

REMOTE_TIMEOUT_SECONDS: Final = 60.0
"""A call with all its attempts, where neither services.xml nor the request allows less."""
REMOTE_PAUSE_SECONDS: Final = 5.0
"""The longest pause before another attempt, where the endpoint does not ask for a longer one."""
REMOTE_CONNECTIONS: Final = 16
"""Requests of one component at a time; others wait for their turn."""
GENERATION_TIMEOUT_SECONDS: Final = 120.0
"""A call of a language model with all its attempts; less than an operation on a document may take by default."""
MODEL_TIMEOUT_SECONDS: Final = 60.0
"""How long `paperwasp models fetch` waits for the next bytes of a model."""
REMOTE_ANSWER_BYTES: Final = 64 * 1024 * 1024
SECRET_CHARACTERS: Final = 64 * 1024
