"""The jobs that examples of docstrings and of the README speak of, laid out in a folder.

``traces/`` is the stored capture of two CPU ranks. The others are simulated: ``base/`` and
``new/``, where one operator has a slower kernel, and ``n4/``, ``n8/``, ``n16/``, data parallel
on so many ranks.
"""

from __future__ import annotations

from pathlib import Path

from tests.compared import OtherGemm, placed
from tests.contract.places import GLOO
from tests.simulated import made

__all__ = ["lay_out"]


def lay_out(folder: Path) -> None:
    """Write the traces of all jobs, each into its folder."""
    (folder / "traces").mkdir()
    for path in sorted(GLOO.glob("rank*")):
        (folder / "traces" / path.name).symlink_to(path)
    placed(folder / "base", ranks=2)
    placed(folder / "new", ranks=2, writer=OtherGemm, seed=2)
    for ranks in (4, 8, 16):
        made("ddp", ranks, 1).place(folder / f"n{ranks}")
