"""A host that lets its device wait: between launches, for data, in calls that synchronize."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from traceparse.run.facts import BESIDES
from traceparse.run.findings.finding import Finding, Severity, finding
from traceparse.run.findings.view import View
from traceparse.units import format_count, format_duration, format_figure, format_ratio

__all__ = ["data_loader", "launch_gaps", "synchronizing_calls"]

_LEAST: Final = 0.05  # of the device-steps
_SERIOUS: Final = 0.10
_REPLAY: Final = "launch_gaps_gone"


def launch_gaps(view: View) -> Iterator[Finding]:
    """Find devices that idle because the host has not launched yet.

    What it would win back is that idle time, or what a replay without any such gap wins, if
    that is less.
    """
    ratio = view.host_ratio("launch_ns")
    if ratio < _LEAST:
        return
    evidence = [
        f"devices idle for {format_ratio(ratio)} of the {view.unit} while the host is on its "
        f"way to the next launch"
    ]
    count, time_ns = view.kernels.get("count", 0), view.kernels.get("time_ns", 0)
    if count:
        evidence.append(
            f"a mean kernel takes {format_duration(round(time_ns / count))} "
            f"({format_count(count)} kernels in the files)"
        )
    if slowing := [words for name, words in BESIDES.items() if name in view.settings]:
        evidence.append(
            f"{' and '.join(slowing)} were recorded, which slows hosts: some of it is the "
            f"profiler's"
        )
    yield finding(
        "launch_gaps",
        _severity(ratio),
        f"the host launches too late for {format_ratio(ratio)} of the {view.unit}",
        "; ".join([*evidence, *_replayed(view)]),
        'launch less: torch.compile(mode="reduce-overhead") or CUDA graphs '
        "(torch.cuda.make_graphed_callables), a larger batch for each rank, foreach=True or "
        "fused=True in the optimizer; pin the process to the cores near its device (numactl)",
        lost_ratio=_won(view, ratio),
    )


def data_loader(view: View) -> Iterator[Finding]:
    """Find devices that idle while the host waits for its next batch."""
    ratio = view.host_ratio("data_loader_ns")
    if ratio < _LEAST:
        return
    yield finding(
        "data_loader",
        _severity(ratio),
        f"the data loader lets devices wait for {format_ratio(ratio)} of the {view.unit}",
        "; ".join(
            [
                f"devices idle for {format_ratio(ratio)} of the {view.unit} while the host is "
                f"in the data loader",
                *_replayed(view),
            ]
        ),
        "DataLoader(num_workers=...) above 0 and up to the cores that each rank has, "
        "persistent_workers=True, prefetch_factor=4, pin_memory=True; decode and tokenize "
        "ahead of training",
        lost_ratio=_won(view, ratio),
    )


def synchronizing_calls(view: View) -> Iterator[Finding]:
    """Find devices that idle because the host waited for them, with nothing launched ahead."""
    ratio = view.host_ratio("sync_ns")
    if ratio < _LEAST:
        return
    evidence = [
        f"devices idle for {format_ratio(ratio)} of the {view.unit} in or right after calls "
        f"that wait for them"
    ]
    if view.num_syncs_per_step:
        evidence.append(
            f"{format_figure(view.num_syncs_per_step)} such calls a step on a mean device"
        )
    yield finding(
        "synchronizing_calls",
        _severity(ratio),
        f"calls that wait for the device leave it idle for {format_ratio(ratio)} of the "
        f"{view.unit}",
        "; ".join([*evidence, *_replayed(view)]),
        'find them with torch.cuda.set_sync_debug_mode("warn"): .item(), .cpu(), .tolist(), '
        "nonzero, printing a loss, torch.cuda.synchronize; log every N steps, copy with "
        "non_blocking=True, clip gradients with error_if_nonfinite=False, and unset "
        "CUDA_LAUNCH_BLOCKING",
        lost_ratio=_won(view, ratio),
    )


def _severity(ratio: float) -> Severity:
    return "warning" if ratio >= _SERIOUS else "info"


def _replayed(view: View) -> Iterator[str]:
    won = view.won_ratio(_REPLAY)
    if won is not None:
        yield (
            f"a replay in which no device waits for its host, for whatever reason, wins "
            f"{format_ratio(max(won, 0.0))}"
        )


def _won(view: View, ratio: float) -> float:
    won = view.won_ratio(_REPLAY)
    return ratio if won is None else min(ratio, max(won, 0.0))
