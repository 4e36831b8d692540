from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("no times", deadline=None)  # other programs may have the machine
settings.load_profile("no times")


@pytest.fixture(scope="session", autouse=True)
def no_cache_of_others(tmp_path_factory):
    """Keep what tests digest away from what the user has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
