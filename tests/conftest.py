"""Settings of all tests: hypothesis takes the same examples in every run and sets no time limit for one of them,
because the first call of a kernel compiles it.
"""

from hypothesis import settings

from tests.live_site import live  # noqa: F401 (fixtures for every test)
from tests.site import client, site_data  # noqa: F401

settings.register_profile("lexiscope", deadline=None, derandomize=True)
settings.load_profile("lexiscope")
