from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from traceparse.capture.functions import Named, after_import
from traceparse.errors import UsageError

CODE = """
def train(x, *, y=0):
    if x > 10:
        return train(x - 10, y=y)
    if x < 0:
        raise ValueError(x)
    return x + y

class Engine:
    def step(self, x):
        return x
    @staticmethod
    def still(x):
        return x
    @classmethod
    def made(cls, x):
        return cls, x

class Sub(Engine):
    pass

number = 7
"""


@pytest.fixture
def module() -> Iterator[Any]:
    it = ModuleType("job_of_somebody")
    exec(CODE, it.__dict__)
    sys.modules[it.__name__] = it
    yield it
    del sys.modules[it.__name__]


class Done:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def test_a_function_is_counted_when_it_has_returned(module: Any) -> None:
    done = Done()
    named = Named("job_of_somebody:train")
    assert named.call_after(done)
    assert module.train(2, y=3) == 5
    assert module.train(31) == 1  # which calls itself
    with pytest.raises(ValueError, match="-1"):
        module.train(-1)
    assert done.times == 2
    assert module.train.__name__ == "train"


def test_it_is_counted_once_however_often_it_is_looked_for(module: Any) -> None:
    done = Done()
    named = Named("job_of_somebody:train")
    assert named.call_after(done)
    assert named.call_after(done)
    module.train(1)
    assert done.times == 1


def test_methods_are_counted(module: Any) -> None:
    done = Done()
    assert Named("job_of_somebody:Engine.step").call_after(done)
    assert Named("job_of_somebody:Engine.still").call_after(done)
    assert Named("job_of_somebody:Engine.made").call_after(done)
    engine = module.Engine()
    assert engine.step(1) == 1
    assert (engine.still(2), module.Engine.still(3)) == (2, 3)
    assert module.Engine.made(4) == (module.Engine, 4)
    assert engine.made(5) == (module.Engine, 5)
    assert done.times == 5


def test_a_method_of_the_class_above_is_counted_of_this_class(module: Any) -> None:
    done = Done()
    for name in ("step", "still", "made"):
        assert Named(f"job_of_somebody:Sub.{name}").call_after(done)
    assert module.Sub().step(1) == module.Engine().step(1) == 1
    assert module.Sub().still(2) == module.Engine().still(2) == 2
    assert module.Sub.made(3) == (module.Sub, 3)
    assert module.Engine.made(3) == (module.Engine, 3)
    assert done.times == 3


@pytest.mark.parametrize("path", ["none", "number", "Engine.none", "none.step"])
def test_what_is_not_there_is_not_found(module: Any, path: str) -> None:
    named = Named(f"{module.__name__}:{path}")
    assert not named.call_after(Done())
    assert not named.is_found


def test_a_module_that_is_not_imported_is_not_found() -> None:
    assert not Named("not_imported_at_all:train").call_after(Done())


@pytest.mark.parametrize("text", ["", "train", "a.b.c", "a:", ":b", "a:b:c", "a b:c", "1a:b"])
def test_a_text_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Named(text)
    assert str(caught.value) == (
        f"--step-on {text!r}: give module:function or module:Class.method, such as "
        "deepspeed.runtime.engine:DeepSpeedEngine.step or __main__:train_step"
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield tmp_path
    assert sys.meta_path == before
    sys.modules.pop("made_for_a_test", None)


def test_somebody_is_called_when_a_module_has_been_executed(folder: Path) -> None:
    (folder / "made_for_a_test.py").write_text("value = 7\n")
    seen: list[int] = []
    after_import("made_for_a_test", lambda: seen.append(sys.modules["made_for_a_test"].value))
    importlib.import_module("json.tool")
    assert seen == []
    importlib.import_module("made_for_a_test")
    assert seen == [7]
    after_import("made_for_a_test", lambda: seen.append(8))
    assert seen == [7, 8]


def test_a_module_that_fails_fails_as_ever(folder: Path) -> None:
    (folder / "made_for_a_test.py").write_text("1 / 0\n")
    seen: list[int] = []
    after_import("made_for_a_test", lambda: seen.append(1))
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("made_for_a_test")
    assert seen == []


@pytest.mark.usefixtures("folder")
def test_a_module_that_there_is_not_is_missed_as_ever() -> None:
    after_import("made_for_a_test", lambda: None)
    with pytest.raises(ModuleNotFoundError, match="No module named 'made_for_a_test'"):
        importlib.import_module("made_for_a_test")


def test_a_folder_without_code_is_imported_as_ever(folder: Path) -> None:
    (folder / "made_for_a_test").mkdir()
    after_import("made_for_a_test", lambda: pytest.fail("there is no function in it"))
    assert importlib.import_module("made_for_a_test").__name__ == "made_for_a_test"
