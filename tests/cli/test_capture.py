from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from traceparse.capture import command
from traceparse.capture.environment import Told
from traceparse.cli.capture import capture
from traceparse.errors import UsageError


class Ran:
    """A command that is not run, and what it leaves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, status: int = 0) -> None:
        self.told: list[tuple[Any, Told]] = []
        self.kept: list[Path] = []
        self.left: list[Path] = []

        def run_captured(words: list[str], what: Told) -> int:
            self.told.append((words, what))
            return status

        monkeypatch.setattr(command, "run_captured", run_captured)
        monkeypatch.setattr(command, "kept_in", lambda _: self.kept)
        monkeypatch.setattr(command, "wait_until_kept", lambda _, patience_s: self.left)  # noqa: ARG005


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    return Ran(monkeypatch)


def status_of(*words: str, **options: Any) -> int:
    with pytest.raises(typer.Exit) as caught:
        capture(list(words), **{"out": Path("there"), **options})
    return caught.value.exit_code


def test_a_command_is_told_what_was_asked_for(ran: Ran) -> None:
    status_of("python", "train.py", "--lr", "1")
    assert ran.told == [
        (
            ["python", "train.py", "--lr", "1"],
            Told(str(Path("there").absolute()), (10, 12)),
        )
    ]


def test_every_option_arrives(ran: Ran) -> None:
    options: dict[str, Any] = {
        "step_on": "a:b",
        "ranks": "0,8-15",
        "stacks": True,
        "memory": True,
        "count_flop": True,
        "overwrite": True,
        "with_host": True,
        "model_flop_per_step": 1,
        "params": 2,
        "tokens_per_step": 3,
        "samples_per_step": 4,
    }
    status_of("python", steps="3", **options)
    assert ran.told[0][1] == Told(str(Path("there").absolute()), (3, 3), **options)


@pytest.mark.parametrize("status", [0, 7])
def test_it_ends_as_the_command_did(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    Ran(monkeypatch, status=status)
    assert status_of("python") == status


@pytest.mark.parametrize(
    "wrong",
    [
        ({"ranks": "some"}, "ranks='some': give 'all', 'node' "),
        ({"step_on": "train"}, "--step-on 'train': give module:function"),
    ],
    ids=str,
)
def test_a_wrong_wish_is_refused_before_anything_runs(
    ran: Ran, wrong: tuple[dict[str, Any], str]
) -> None:
    options, said = wrong
    with pytest.raises(UsageError) as caught:
        capture(["python"], out=Path("there"), **options)
    assert str(caught.value).startswith(said)
    assert ran.told == []


def test_traces_that_were_kept_are_counted(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    ran.kept = [Path("a"), Path("b")]
    status_of("python")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "traceparse: there: 2 traces; now: traceparse analyze there\n"


def test_where_none_is_kept_it_is_said_what_to_do(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    status_of("python", steps="20-22")
    assert capsys.readouterr().err == (
        "traceparse: there: no trace was written: no process of the command ended step 20, as "
        "far as torch's optimizers tell; ask for earlier steps, or name the function that is a "
        "step with --step-on MODULE:FUNCTION\n"
    )
    assert len(ran.told) == 1


def test_a_trace_that_is_not_packed_is_named(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    ran.left = [Path("there/.raw")]
    status_of("python")
    assert capsys.readouterr().err == (
        "traceparse: there/.raw: was not packed; as NAME.json it can be analyzed\n"
    )


def test_quiet_is_quiet(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    status_of("python", quiet=True)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    assert len(ran.told) == 1
