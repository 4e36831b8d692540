from __future__ import annotations

import subprocess
import sys


def test_no_module_makes_an_arrow_array_when_it_is_imported():
    """The first one would import pandas: 0.13 s that `spare_pandas` could no longer spare."""
    code = (
        "import sys, traceparse.engine, traceparse.report.terminal, traceparse.report.html\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
