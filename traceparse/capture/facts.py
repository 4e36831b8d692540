"""Facts that a trace does not hold: versions, device, process groups. Nothing personal.

Each fact is asked for on its own, so that one that torch does not tell costs no other.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from traceparse import __version__
from traceparse.capture.device import device_facts, limit_facts
from traceparse.capture.said import Said
from traceparse.errors import UsageError
from traceparse.units import format_ranges

__all__ = ["current_rank", "process_facts"]

_VERSION = 1
_MOST_GROUPS = 1 << 12


def process_facts(said: Said, *, with_host: bool) -> dict[str, Any]:
    """Return what is known of this process, its device, and the job it is a part of."""
    torch = import_module("torch")
    facts: dict[str, Any] = {"facts_version": _VERSION, "num_threads": torch.get_num_threads()}
    for gather in (_versions, device_facts, limit_facts, _job):
        with said.training_goes_on(f"facts are missing ({gather.__name__.strip('_')})"):
            facts |= gather(torch)
    if with_host:
        facts |= {
            "host_name": platform.node(),
            "command": sys.argv,
            "folder": os.fspath(Path.cwd()),
        }
    return {name: value for name, value in facts.items() if value is not None}


def current_rank() -> int:
    """Return torch.distributed's rank, else ``RANK`` of the environment, else 0.

    Raises
    ------
    UsageError
        ``RANK`` is no rank.
    """
    distributed = import_module("torch.distributed")
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    text = os.environ.get("RANK", "0")
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"RANK={text!r} in the environment is no rank; set it, or pass rank=")
    return int(text)


def _versions(torch: ModuleType) -> dict[str, Any]:
    nccl = None
    if torch.cuda.is_available() and torch.distributed.is_nccl_available():
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
    return {
        "traceparse_version": __version__,
        "python_version": platform.python_version(),
        "torch_version": str(torch.__version__),
        "cuda_version": torch.version.cuda,
        "hip_version": torch.version.hip,
        "nccl_version": nccl,
    }


def _job(torch: ModuleType) -> dict[str, Any]:
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return {}
    return {
        "world_size": int(distributed.get_world_size()),
        "backend": str(distributed.get_backend()),
        "groups": list(_groups()),
    }


def _groups() -> Iterator[dict[str, str]]:
    """Name each process group with all its ranks, as their numbers in the whole job."""
    world = import_module("torch.distributed.distributed_c10d")._world
    for group, members in [*world.pg_group_ranks.items()][:_MOST_GROUPS]:
        if not members:
            continue
        yield {
            "name": str(world.pg_names.get(group, "")),
            "ranks": format_ranges(sorted(members)),
            "description": str(getattr(group, "group_desc", "")),
        }
