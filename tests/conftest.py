"""What holds for all tests: a slow machine is no failure, and a random one tells how to repeat it."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "paperwasp",
    deadline=None,
    print_blob=True,
    # The second: examples that share a fixture do so knowingly, and use a folder of their own in it.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("paperwasp")
