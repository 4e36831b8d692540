"""The tool that photographs pages."""

from __future__ import annotations

import struct

import pytest

from tools.page_shots import main, picture, show

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_page_is_photographed_and_measured(browser, tmp_path, capsys):
    show(browser, tmp_path, ["demo"], times=1)
    name, size, paint, drawn = capsys.readouterr().out.splitlines()[-1].split()
    assert name == "demo"
    assert float(size) == pytest.approx((tmp_path / "demo.html").stat().st_size / 1e6, abs=0.01)
    assert 0 < float(paint)
    assert 0 < float(drawn)
    shots = [
        f"demo-{kind}{top}.png"
        for kind in ("light", "dark", "narrow", "print")
        for top in ("", "-top")
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"demo.html", "demo.pdf", *shots}
    assert all((tmp_path / shot).read_bytes().startswith(b"\x89PNG") for shot in shots)


def test_an_unknown_page_is_wrong_usage(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path), "nothing"])
    assert ended.value.code == 2
    assert "no page is called nothing" in capsys.readouterr().err


def test_the_pictures_of_the_readme_are_those_of_its_example(browser, tmp_path):
    picture(browser, tmp_path)
    sizes = {
        path.name: struct.unpack(">II", path.read_bytes()[16:24]) for path in tmp_path.iterdir()
    }
    assert sizes["page.png"] == (1180, 1000)
    assert sizes.keys() == {"page.png", "waterfall.png"}


@pytest.mark.parametrize("words", [[], ["--readme", "folder"]])
def test_a_folder_or_the_readme_is_asked_for(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "give a folder, or --readme" in capsys.readouterr().err
