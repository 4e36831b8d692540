"""SQL on real traces: a query over events finds what the report counted in its own way."""

from __future__ import annotations

import pytest

from tests.contract.places import PUBLIC
from traceparse.bridge.sql import select

SAMPLE = PUBLIC[::7]  # every seventh, of all makers
COUNTED = """
WITH counted AS (
    SELECT rank, device, count(*) AS num, sum(dur_ns) AS ns
    FROM device_events WHERE kind <> 'copy' GROUP BY ALL
)
SELECT
    devices.device,
    kernels_count - coalesce(num, 0) AS num,
    kernels_time_ns - coalesce(ns, 0) AS ns
FROM devices
LEFT JOIN counted
    ON counted.device = devices.device AND counted.rank IS NOT DISTINCT FROM devices.rank
WHERE devices.device <> 'cpu'
"""


@pytest.mark.slow
@pytest.mark.skipif(not PUBLIC, reason="no shared traces here")
@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.name)
def test_kernels_add_up_to_what_the_report_says_of_devices(path):
    found = select(path, COUNTED).table.to_pylist()
    assert all((row["num"], row["ns"]) == (0, 0) for row in found), found
