"""Pages of commands: as the commands are, and complete."""

from __future__ import annotations

import pytest
import typer

from tools import make_docs
from traceparse.cli import app

COMMANDS = vars(typer.main.get_command(app))["commands"]


def test_the_stored_pages_are_what_the_commands_say():
    outdated = list(make_docs.out_of_date(make_docs.FOLDER))
    assert not outdated, f"run python tools/make_docs.py: {', '.join(outdated)}"


def test_guides_are_listed_and_there():
    listed = make_docs.pages()["README.md"]
    assert make_docs.GUIDES
    for name in make_docs.GUIDES:
        assert f"({name})" in listed
        assert (make_docs.FOLDER / name).is_file()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_every_option_and_an_example(name):
    page = make_docs.pages()[f"{name}.md"]
    for parameter in COMMANDS[name].params:
        for option in parameter.opts if parameter.opts[0].startswith("-") else ():
            assert f"`{option}`" in page
    assert page.count(f"\ntraceparse {name}") > 1
    assert "\\[" not in page


def test_the_status_of_a_gate_is_told():
    rows = [line for line in make_docs.pages()["check.md"].splitlines() if line[:3] == "| 3"]
    assert rows == ["| 3 | a limit is crossed, or cannot be told |"]


def test_pages_that_are_old_or_of_no_command_are_renewed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_docs, "FOLDER", tmp_path)
    make_docs.main()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == make_docs.pages()
    (tmp_path / "gone.md").write_text("of a command that is gone")
    (tmp_path / "sql.md").write_text("old")
    (tmp_path / "clusters.md").write_text("by hand")
    assert list(make_docs.out_of_date(tmp_path)) == ["gone.md", "sql.md"]
    capsys.readouterr()
    make_docs.main()
    assert not list(make_docs.out_of_date(tmp_path))
    said = capsys.readouterr().err.splitlines()
    assert (tmp_path / "clusters.md").read_text() == "by hand"
    assert said == [f"removed {tmp_path}/gone.md", f"wrote {tmp_path}/sql.md"]
