from __future__ import annotations

import pytest

from traceparse import errors


def test_the_tree_in_the_docstring_is_the_tree():
    classes = [
        value
        for name in errors.__all__
        if isinstance(value := getattr(errors, name), type)
        and issubclass(value, errors.TraceparseError)
    ]
    for kind in classes:
        assert kind.__name__ in errors.__doc__
        assert kind.exit_status == (2 if kind is errors.UsageError else 1)


def test_a_note_is_about_the_whole_run_unless_it_says_otherwise():
    note = errors.Note("code", "message")
    assert (note.rank, note.file) == (None, None)
    with pytest.raises(AttributeError):
        note.code = "other"  # type: ignore[misc]
