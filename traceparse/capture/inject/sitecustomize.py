"""Loaded by every Python process of a command that ``traceparse capture`` runs.

Python looks for a module of this name when it starts. Whoever has one of the same name further
on the path gets it as well.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

# Without pathlib, as every process of the job pays for what is imported here.
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


def _install() -> None:
    home = os.environ.get("TRACEPARSE_HOME", "")
    sys.path.append(home)  # last, and only for now: the job's own packages stay what they are
    try:
        from traceparse.capture.hook import install

        install()
    except Exception as error:  # noqa: BLE001 - the job is worth more
        sys.stderr.write(
            "traceparse: nothing is captured in this process, it goes on: "
            f"{type(error).__name__}: {error}\n"
        )
    finally:
        if home in sys.path:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(home)]


def _load_the_next() -> None:
    sys.path[:] = [
        folder
        for folder in sys.path
        if os.path.abspath(folder or ".") != _HERE  # noqa: PTH100
    ]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_install()
_load_the_next()
