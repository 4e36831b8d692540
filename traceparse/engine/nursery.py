"""What the server of :mod:`traceparse.engine.processes` imports, and its forks need not.

Its objects are set aside: nobody looks through them for garbage, neither while they are made
nor in every fork, which would copy them by that.
"""

from __future__ import annotations

import gc

gc.disable()

import traceparse.engine.local  # noqa: E402, F401 - for the forks

gc.freeze()
gc.enable()

__all__: list[str] = []
