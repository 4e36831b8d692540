"""Write a page a command, from the commands themselves: usage, arguments, options, statuses.

``python tools/make_docs.py`` writes ``traceparse/docs/``; a test says where it is not what the
commands say. Guides there are written by hand, and only listed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer

from traceparse.cli import app

__all__ = ["EXAMPLES", "FOLDER", "GUIDES", "out_of_date", "pages"]

FOLDER: Final = Path(__file__).resolve().parents[1] / "traceparse" / "docs"
GUIDES: Final[Mapping[str, str]] = {
    "clusters.md": "Read traces on the workers of a cluster, beside a SLURM or Kubernetes job.",
    "performance.md": "How fast, and in how much memory, beside other readers.",
}
_MADE: Final = "<!-- made by tools/make_docs.py from the command itself; change it there -->"
_STATUSES: Final = {
    "0": "done",
    "1": "bad input or failure; one line says which file, what is wrong, and what to do",
    "2": "wrong usage",
    "130": "interrupted",
}
_OWN_STATUSES: Final[Mapping[str, Mapping[str, str]]] = {
    "capture": {"any other": "that of the command"},
    "check": {"3": "a limit is crossed, or cannot be told"},
}


class Example(NamedTuple):
    """A command line, and what it is for."""

    line: str
    what: str


EXAMPLES: Final[Mapping[str, Sequence[Example]]] = {
    "analyze": (
        Example("traceparse analyze traces/", "one screen"),
        Example("traceparse analyze n8/ --full --steps 11-12", "all there is, of two steps"),
        Example("traceparse analyze n8/ --out report/", "a page, JSON, Markdown, tables"),
        Example("traceparse analyze traces/ --peak fp32=0.1", "a peak that no table has"),
    ),
    "capture": (
        Example("traceparse capture --out recorded -- python train.py", "steps 10 to 12"),
    ),
    "demo": (Example("traceparse demo --out demo", "record and analyze a small model here"),),
    "scaling": (
        Example("traceparse scaling n4/ n8/ n16/", "what is lost as a job grows"),
        Example("traceparse scaling n4/ n16/ --mode weak --json", "the same for programs"),
    ),
    "compare": (
        Example("traceparse compare base/ new/", "what changed, and whether by chance"),
        Example("traceparse compare base/ new/ --out diff.html", "the same as a page"),
    ),
    "check": (
        Example("traceparse check n8/ --fail-on 'mfu < 35%'", "a limit"),
        Example(
            "traceparse check n8/ --fail-on \"finding('straggler')\" --junit check.xml",
            "a finding, for a CI that reads JUnit",
        ),
    ),
    "sql": (
        Example(
            "traceparse sql n8/ 'SELECT op, sum(dur_ns) AS ns FROM kernels GROUP BY op "
            "ORDER BY ns DESC LIMIT 5'",
            "operators by the time of their kernels",
        ),
        Example(
            "traceparse sql n8/ 'SELECT rank, mfu, idle_ns FROM devices' --format csv",
            "a table of the report",
        ),
        Example("traceparse sql n8/ 'FROM kernels' --out kernels.parquet", "as a file"),
        Example("traceparse sql n8/ 'DESCRIBE kernels'", "the columns of a table"),
    ),
    "overlay": (
        Example("traceparse overlay n8/ -o overlay.json.gz", "for https://ui.perfetto.dev"),
    ),
    "mfu": (
        Example(
            "traceparse mfu --model config.json --step-s 3.2 --batch 512 --seq 8192 --gpus 64 "
            "--accelerator a100-sxm-80",
            "of a model that is described by its configuration",
        ),
    ),
    "accelerators": (
        Example("traceparse accelerators", "all of them"),
        Example("traceparse accelerators h100", "all about those called so"),
    ),
    "schema": (Example("traceparse schema", "tables of a run, and of a report"),),
}


def pages() -> dict[str, str]:
    """Return the pages by their names: one a command, and one that lists them."""
    commands = vars(typer.main.get_command(app))["commands"]
    found = {f"{name}.md": _page(name, command) for name, command in commands.items()}
    lines = [
        f"| [`traceparse {name}`]({name}.md) | {_cell(_help(command)[0])} |"
        for name, command in commands.items()
    ]
    guides = [f"| [`{name}`]({name}) | {_cell(what)} |" for name, what in GUIDES.items()]
    found["README.md"] = _joined(
        [
            _MADE,
            "# Commands",
            "\n".join(["| command | |", "|---|---|", *lines]),
            "# Guides",
            "\n".join(["| page | |", "|---|---|", *guides]),
        ]
    )
    return found


def _page(name: str, command: Any) -> str:  # noqa: ANN401 - typer's own
    first, *more = _help(command)
    shown = [one for one in command.params if not one.hidden]
    arguments = [one for one in shown if not _is_option(one)]
    words = " ".join(one.metavar or one.name.upper() for one in arguments)
    usage = f"traceparse {name} [OPTIONS] {words}".rstrip()
    parts = [_MADE, f"# traceparse {name}", first, f"```\n{usage}\n```", *more]
    if arguments:
        parts += ["## Arguments", _table(["argument", ""], map(_argument, arguments))]
    for panel, options in _panels([one for one in shown if _is_option(one)]).items():
        parts += [f"## {panel}", _table(["option", "default", ""], map(_option, options))]
    statuses = {**_STATUSES, **_OWN_STATUSES.get(name, {})}
    parts += ["## Exit status", _table(["status", ""], sorted(statuses.items(), key=_number))]
    examples = [f"{one.line}  # {one.what}" for one in EXAMPLES[name]]
    return _joined([*parts, "## Examples", "\n".join(["```", *examples, "```"])])


def _help(command: Any) -> list[str]:  # noqa: ANN401 - typer's own
    """Return the paragraphs of a command's help, without the marks of rich."""
    text = str(command.help).replace("\\[", "[")
    return [" ".join(one.split()) for one in re.split(r"\n\s*\n", text)]


def _is_option(parameter: Any) -> bool:  # noqa: ANN401 - typer's own
    return str(parameter.opts[0]).startswith("-")


def _panels(options: Sequence[Any]) -> dict[str, list[Any]]:
    panels: dict[str, list[Any]] = {"Options": []}
    for one in options:
        panels.setdefault(one.rich_help_panel or "Options", []).append(one)
    return {panel: own for panel, own in panels.items() if own}


def _argument(parameter: Any) -> tuple[str, ...]:  # noqa: ANN401 - typer's own
    return f"`{parameter.metavar or parameter.name.upper()}`", _meaning(parameter)


def _option(parameter: Any) -> tuple[str, ...]:  # noqa: ANN401 - typer's own
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = "" if parameter.is_flag else f" `{parameter.metavar or parameter.name.upper()}`"
    again = "; may be repeated" if parameter.multiple else ""
    return names + value, _default(parameter), f"{_meaning(parameter).rstrip('.')}{again}."


def _default(parameter: Any) -> str:  # noqa: ANN401 - typer's own
    if parameter.required:
        return "required"
    is_told = parameter.default is not None and not parameter.is_flag
    return f"`{parameter.default}`" if is_told else ""


def _meaning(parameter: Any) -> str:  # noqa: ANN401 - typer's own
    return " ".join(str(parameter.help or "").replace("\\[", "[").split())


def _number(entry: Sequence[str]) -> tuple[bool, str]:
    status = entry[0]
    return not status.isdigit(), status.zfill(3)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(parts) + "\n"


def out_of_date(folder: Path) -> Iterator[str]:
    """Yield the names of pages that are not what the commands say, or are of none."""
    wanted = pages()
    there = {path.name for path in folder.glob("*.md")} - GUIDES.keys()
    for name in sorted(wanted.keys() | there):
        path = folder / name
        if name not in wanted or name not in there or path.read_text("utf-8") != wanted[name]:
            yield name


def main() -> None:
    """Write the pages, and take away those of commands that are gone."""
    FOLDER.mkdir(exist_ok=True)
    for name in out_of_date(FOLDER):
        path, text = FOLDER / name, pages().get(name)
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")
        print(f"{'removed' if text is None else 'wrote'} {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
