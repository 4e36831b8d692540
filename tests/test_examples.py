"""What docstrings of the public names show is what comes of it, to the letter."""

from __future__ import annotations

import doctest
from collections.abc import Iterator

import pytest

import traceparse
from tests.examples import lay_out


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    lay_out(folder)
    return folder


def found(name: str) -> Iterator[doctest.DocTest]:
    """Find the examples of a public name and of its methods; the module's are called so."""
    public = traceparse if name == "traceparse" else getattr(traceparse, name)
    finder = doctest.DocTestFinder(recurse=name != "traceparse")
    for test in finder.find(public, name, globs={"traceparse": traceparse}):
        if test.examples:
            yield test


@pytest.mark.slow
@pytest.mark.parametrize("name", ["traceparse", *traceparse.__all__])
def test_examples_say_what_comes_of_them(jobs, monkeypatch, name):
    monkeypatch.chdir(jobs)
    tests = list(found(name))
    assert tests, f"{name} has no example"
    for test in tests:
        assert not any(doctest.SKIP in example.options for example in test.examples)
        said: list[str] = []
        doctest.DocTestRunner().run(test, out=said.append)
        assert not said, "".join(said)
