"""The calculator's answer as JSON text: report contract, section 6."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from traceparse.work.conventions import counts_of
from traceparse.work.job import Answer

__all__ = ["render"]


def render(answer: Answer) -> str:
    """Return the figures as one JSON document; of several runs, those of the fewest GPUs.

    ``scaling`` has all runs, each with its figures, and is ``null`` of a single one.
    """
    job = answer.job
    figures: dict[str, Any] = asdict(answer.runs[0])
    figures |= {
        "counts": counts_of(job.model, job.convention),
        "recompute": job.recompute,
        "derived": list(job.model.derived),
        "notes": [
            {"code": note.code, "message": note.message}
            for note in (*answer.errors, *answer.notes)
        ],
        "scaling": {"mode": job.mode, "runs": _runs(answer)} if answer.scaled else None,
    }
    return json.dumps(figures, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _runs(answer: Answer) -> list[dict[str, Any]]:
    rows = zip(answer.scaled, answer.batches, answer.runs, strict=True)
    return [asdict(scaled) | {"batch": batch} | asdict(run) for scaled, batch, run in rows]
