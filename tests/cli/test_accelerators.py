from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from traceparse import cli
from traceparse.cli import app
from traceparse.work import accelerators


def test_all_of_them():
    shown = CliRunner().invoke(app, ["accelerators"])
    assert shown.exit_code == 0
    ids = [line.split()[0].rstrip("*") for line in shown.stdout.splitlines()]
    assert [id_ for id_ in ids if id_ in {entry.id for entry in accelerators()}] == [
        entry.id for entry in accelerators()
    ]


def test_all_about_some():
    shown = CliRunner().invoke(app, ["accelerators", "H100"]).stdout
    heads = [line.partition(":")[0] for line in shown.splitlines() if line[:1] == "h"]
    assert heads == ["h100-nvl", "h100-pcie", "h100-sxm", "h100-96-custom"]


def test_none_is_status_1_and_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["traceparse", "accelerators", "h1000"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    assert capsys.readouterr() == (
        "",
        "traceparse: no accelerator is called 'h1000'; nearest are h100-nvl, h100-pcie, "
        "h100-sxm, h100-96-custom, v100-sxm2\n",
    )
