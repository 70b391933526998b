"""Settings that all tests share: how hypothesis searches, what it may keep, and an admin port from the kernel."""

import os

from hypothesis import HealthCheck, settings

# Two cores may be shared with other runs: a slow example is no finding. Nothing is kept between runs,
# so a clean clone and a used one test the same; print_blob gives what is needed to repeat a failure.
settings.register_profile(
    "house",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

# Servers of several tests may run at once, each with an admin port; who wants a certain one names it.
os.environ["ELASTICQ_ADMIN__PORT"] = "0"
