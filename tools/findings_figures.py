"""What findings are judged by, in words: the figures of a report that decide on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = [
    "Report",
    "copies",
    "dtypes",
    "exposed",
    "host",
    "model_and_executed",
    "overhead",
    "roof",
    "rows",
    "small",
    "speed",
    "stages",
    "steps_judged",
    "term",
    "waiting",
]

Report: TypeAlias = Mapping[str, Any]


def _share(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{100 * ratio:.1f} %"


def _span(report: Report) -> int:
    return int(report["summary"]["times"]["span_ns"])


def exposed(report: Report) -> str:
    """Return what is exposed, and what runs beside compute."""
    times = report["summary"]["times"]
    overlap = times["overlap_ns"] / times["comm_ns"]
    return (
        f"exposed {_share(report['summary']['exposed_comm_ratio'])}, "
        f"{_share(overlap)} of comm overlapped"
    )


def small(report: Report) -> str:
    """How many collectives a step, how large, how exposed."""
    count, steps = (
        sum(row["count"] for row in report["collectives"]),
        len(report["devices"][0]["steps"]),
    )
    size = report["collectives"][0]["message_bytes"]
    return f"{count // steps} a step of {size:,} B; {exposed(report)}"


def term(name: str) -> Callable[[Report], str]:
    """Return what tells a term of the waterfall."""

    def figures(report: Report) -> str:
        terms = {row["name"]: row["ratio"] for row in report["utilization"]["waterfall"]}
        return f"{name} {_share(terms[name])}"

    return figures


def roof(report: Report) -> str:
    """How near to its roof the first product is."""
    row = report["roofline"][0]
    return f"{row['shapes']} at {_share(row['roof_ratio'])} of its roof, {row['dtype']}"


def dtypes(report: Report) -> str:
    """In which data types products ran, and how fast."""
    told = (
        f"{row['dtype']} at {row['flop_per_s'] / 1e12:.0f} TFLOP/s"
        for row in report["roofline"]
    )
    return ", ".join(told)


def host(name: str) -> Callable[[Report], str]:
    """Return what tells for how long devices idle for one reason."""

    def figures(report: Report) -> str:
        idle = report["host"]
        return (
            f"{name} {_share(idle[f'{name}_ns'] / _span(report))}, all idle "
            f"{_share(report['summary']['idle_ratio'])}"
        )

    return figures


def copies(report: Report) -> str:
    """How long copies are exposed."""
    return f"exposed copies {_share(report['summary']['exposed_copy_ratio'])}"


def waiting(report: Report) -> str:
    """Return waiting and transfer that are exposed."""
    loss = report["scaling_loss"]
    return (
        f"exposed wait {_share(loss['exposed_wait_ratio'])}, exposed transfer "
        f"{_share(loss['exposed_transfer_ratio'])}"
    )


def stages(report: Report) -> str:
    """How uneven stages of a pipeline are, and how long they wait."""
    sums = {
        device["rank"]: sum(step["compute_ns"] for step in device["steps"][:-1])
        for device in report["devices"]
    }
    return (
        f"most compute {max(sums.values()) * len(sums) / sum(sums.values()):.2f} x the mean, "
        f"pipeline wait {_share(report['scaling_loss']['pipeline_wait_ratio'])}"
    )


def overhead(report: Report) -> str:
    """How much longer profiled steps took."""
    return f"overhead {_share(report['run']['facts']['capture_overhead_ratio'])}"


def speed(report: Report) -> str:
    """How fast products ran, and the MFU."""
    rate, mfu = report["roofline"][0]["flop_per_s"], report["utilization"]["mfu"]
    return f"products at {rate / 1e12:,.0f} of 989 TFLOP/s, MFU {_share(mfu)}"


def model_and_executed(report: Report) -> str:
    """MFU and HFU."""
    use = report["utilization"]
    return f"MFU {_share(use['mfu'])} ({use['mfu_source']}), HFU {_share(use['hfu'])}"


def rows(report: Report) -> str:
    """How many products are known."""
    return f"{len(report['roofline'] or ())} rows of the roofline"


def steps_judged(report: Report) -> str:
    """How many steps are judged."""
    summary = report["summary"]
    num = summary["num_device_steps"] // len(report["devices"])
    return f"{num} steps, basis {summary['basis']}"
