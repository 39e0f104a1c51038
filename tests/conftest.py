"""Settings of all tests: hypothesis takes the same examples in every run and sets no time limit for one of them,
because the first call of a kernel compiles it.
"""

from hypothesis import settings

from tests.site import client, site_data  # noqa: F401 (fixtures for every test)

settings.register_profile("lexiscope", deadline=None, derandomize=True)
settings.load_profile("lexiscope")
