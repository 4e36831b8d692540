"""Make the stored traces of ``fixtures/`` and what is expected of them.

``python tools/make_fixtures.py`` writes every hand-worked trace in every layout and container;
``--gloo`` captures the two-rank training run anew; ``--golden`` writes the report of it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import hand_gpu, hand_numbers, hand_steps, hand_vendors  # noqa: E402
from tools.fuzz_found import FOUND  # noqa: E402
from tools.hand import CASES, Case  # noqa: E402
from tools.layouts import CONTAINERS, write_layout  # noqa: E402

__all__ = ["hand_files", "main"]

FIXTURES = ROOT / "fixtures"
GLOO = FIXTURES / "gloo-2rank"
# registering the cases is what importing these modules is for
MODULES = (hand_gpu, hand_steps, hand_vendors, hand_numbers)


def trace_files(found: Case) -> Iterator[tuple[str, bytes]]:
    """Yield file name and bytes of one case: every layout plain, and each container once."""
    layouts = found.layouts
    containers = [name for name in CONTAINERS if name != "json"]
    for index, layout in enumerate(layouts):
        data = write_layout(found.events, found.header, layout, trailing=found.trailing)
        yield f"{layout}.json", data
        for position, container in enumerate(containers):
            if index == (1 + 2 * position) % len(layouts):  # k-old, py, jd1
                yield f"{layout}.{container}", CONTAINERS[container](data)


def hand_files() -> Iterator[tuple[str, bytes]]:
    """Yield path (below ``fixtures/hand``) and bytes of every file worked out by hand."""
    assert MODULES
    for name, (found, story) in sorted(CASES.items()):
        expected = json.dumps(found.expected, indent=1) + "\n"
        yield f"{name}/expected.json", expected.encode()
        yield f"{name}/worked-out.txt", f"{story}\n".encode()
        for file, data in trace_files(found):
            yield f"{name}/{file}", data


def write_hand() -> None:
    """Replace ``fixtures/hand`` by what the cases say today."""
    folder = FIXTURES / "hand"
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in hand_files():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_found() -> None:
    """Replace ``fixtures/fuzz`` by the inputs that were found once."""
    folder = FIXTURES / "fuzz"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in FOUND.items():
        (folder / f"{name}.bin").write_bytes(data)


def write_gloo() -> None:
    """Train the demo's model on two gloo ranks under capture, and keep traces and facts."""
    # imported here, since it needs torch and the hand-worked traces do not
    from traceparse.capture.launch import run_demo  # noqa: PLC0415

    GLOO.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        for file in sorted(run_demo(Path(temporary), ranks=2).glob("rank*_*.*")):
            shutil.copyfile(file, GLOO / file.name)


def write_golden() -> None:
    """Write the report of the gloo capture, to be read line by line before it is committed."""
    from traceparse.engine import analyze  # noqa: PLC0415  the fixtures need no analyzer

    with contextlib.chdir(ROOT):  # the report names its files as they are given
        report = analyze(GLOO.relative_to(ROOT), jobs=1).to_dict()
    (GLOO / "report.json").write_text(json.dumps(report, indent=1) + "\n")


def main() -> None:
    """Make what the arguments ask for; if nothing, the traces that need no torch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gloo", action="store_true", help="capture the two-rank run anew")
    parser.add_argument("--golden", action="store_true", help="write the report of that run")
    wanted = parser.parse_args()
    if wanted.gloo:
        write_gloo()
    if wanted.golden:
        write_golden()
    if not (wanted.gloo or wanted.golden):
        write_hand()
        write_found()


if __name__ == "__main__":
    main()
