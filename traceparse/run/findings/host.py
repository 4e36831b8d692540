"""A host that lets its device wait: between launches, for data, in calls that synchronize."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from traceparse.run.facts import BESIDES
from traceparse.run.findings.finding import Finding, finding
from traceparse.run.findings.view import View
from traceparse.units import format_count, format_duration, format_figure, format_ratio

__all__ = ["data_loader", "launch_gaps", "synchronizing_calls"]

_LEAST: Final = 0.05  # of the device-steps
_SERIOUS: Final = 0.10
_REPLAY: Final = "launch_gaps_gone"


def launch_gaps(view: View) -> Iterator[Finding]:
    """Find devices that idle because the host has not launched yet.

    What it would win back is that idle time, or what a replay without any such gap wins, if
    that is less; so it is with what else a host lets its device wait for.
    """
    yield from _idle(
        view,
        "launch_ns",
        "launch_gaps",
        title="the host launches too late for {} of the {}",
        evidence=[
            "devices idle for {} of the {} while the host is on its way to the next launch",
            *_about_kernels(view),
        ],
        advice='launch less: torch.compile(mode="reduce-overhead") or CUDA graphs '
        "(torch.cuda.make_graphed_callables), a larger batch for each rank, foreach=True or "
        "fused=True in the optimizer; pin the process to the cores near its device (numactl)",
    )


def data_loader(view: View) -> Iterator[Finding]:
    """Find devices that idle while the host waits for its next batch."""
    yield from _idle(
        view,
        "data_loader_ns",
        "data_loader",
        title="the data loader lets devices wait for {} of the {}",
        evidence=["devices idle for {} of the {} while the host is in the data loader"],
        advice="give DataLoader num_workers=... above 0, up to the cores that each rank has, "
        "persistent_workers=True, prefetch_factor=4, pin_memory=True; decode and tokenize "
        "ahead of training",
    )


def synchronizing_calls(view: View) -> Iterator[Finding]:
    """Find devices that idle because the host waited for them, with nothing launched ahead."""
    num = view.num_syncs_per_step
    counted = [f"{format_figure(num)} such calls a step on a mean device"] if num else []
    yield from _idle(
        view,
        "sync_ns",
        "synchronizing_calls",
        title="calls that wait for the device leave it idle for {} of the {}",
        evidence=[
            "devices idle for {} of the {} that calls which wait for them took",
            *counted,
        ],
        advice='find them with torch.cuda.set_sync_debug_mode("warn"): .item(), .cpu(), '
        ".tolist(), nonzero, printing a loss, torch.cuda.synchronize; log every N steps, copy "
        "with non_blocking=True, and unset CUDA_LAUNCH_BLOCKING",
    )


def _idle(
    view: View, reason: str, code: str, *, title: str, evidence: Sequence[str], advice: str
) -> Iterator[Finding]:
    """Find that devices idle for one reason; texts say for which share of what."""
    ratio, won = view.host_ratio(reason), view.won_ratio(_REPLAY)
    if ratio < _LEAST:
        return
    said = [text.format(format_ratio(ratio), view.unit) for text in evidence]
    if won is not None:
        said.append(
            f"a replay in which no device waits for its host, for whatever reason, wins "
            f"{format_ratio(max(won, 0.0))}"
        )
    yield finding(
        code,
        "warning" if ratio >= _SERIOUS else "info",
        title.format(format_ratio(ratio), view.unit),
        "; ".join(said),
        advice,
        lost_ratio=ratio if won is None else min(ratio, max(won, 0.0)),
    )


def _about_kernels(view: View) -> Iterator[str]:
    count, time_ns = view.kernels.get("count", 0), view.kernels.get("time_ns", 0)
    if count:
        yield (
            f"a mean kernel takes {format_duration(round(time_ns / count))} "
            f"({format_count(count)} kernels in the files)"
        )
    if slowing := [words for name, words in BESIDES.items() if name in view.settings]:
        yield (
            f"{' and '.join(slowing)} were recorded, which slows hosts: some of it is the "
            f"profiler's"
        )
