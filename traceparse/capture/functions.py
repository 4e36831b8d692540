"""When does a step end? When a function that the user names has returned."""

from __future__ import annotations

import importlib.abc
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.machinery import ModuleSpec
from inspect import getattr_static
from types import ModuleType
from typing import Any

from traceparse.errors import UsageError

__all__ = ["Named", "after_import"]

_NAME = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")


class Named:
    """A function by name, ``module:function`` or ``module:Class.method``.

    Raises
    ------
    UsageError
        The text names none.
    """

    def __init__(self, text: str) -> None:
        match = _NAME.fullmatch(text)
        if match is None:
            raise UsageError(
                f"--step-on {text!r}: give module:function or module:Class.method, such as "
                "deepspeed.runtime.engine:DeepSpeedEngine.step or __main__:train_step"
            )
        self.module, self._path = match[1], match[2].split(".")
        self.is_found = False
        self._depth = 0

    def call_after(self, done: Callable[[], None]) -> bool:
        """Call ``done`` whenever the function has returned; is there such a function yet?"""
        if self.is_found:
            return True
        holder: Any = sys.modules.get(self.module)
        *outer, name = self._path
        for each in outer:
            holder = getattr(holder, each, None)
        function = getattr(holder, name, None)
        if not callable(function):
            return False
        own = getattr_static(holder, name, None)  # also of a class above
        counted: Any
        if isinstance(own, classmethod):
            counted = classmethod(self._counted(own.__func__, done))
        else:
            counted = self._counted(function, done)
            counted = staticmethod(counted) if isinstance(own, staticmethod) else counted
        setattr(holder, name, counted)
        self.is_found = True
        return True

    def _counted(self, function: Callable[..., Any], done: Callable[[], None]) -> Any:  # noqa: ANN401
        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the job's own
            self._depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                self._depth -= 1
            if not self._depth:
                done()
            return result

        return counted


class _AfterImport(importlib.abc.MetaPathFinder):
    """Has a module loaded as ever, and then calls somebody."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - as Python's importer calls it
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Find the module as others do, and come back when it has been executed."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        execute, then = spec.loader.exec_module, self._then

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if module.__name__ == fullname:  # a loader may be one of many modules
                then()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def after_import(name: str, then: Callable[[], None]) -> None:
    """Call somebody as soon as a module has been imported, at once if it has been."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _AfterImport(name, then))
