"""Prints what ran: a row per behaviour, a column per cell.  A skip is a failure."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

OUTCOMES = {"passed": "ok", "failed": "FAILED", "skipped": "SKIPPED"}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
    """A server that is missing must not look like a behaviour that holds."""
    outcome = yield
    report = outcome.get_result()
    if "test_parity[" in item.nodeid and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"a skip is no proof: {report.longrepr}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    table: dict[str, dict[str, str]] = defaultdict(dict)
    for word, shown in OUTCOMES.items():
        for report in terminalreporter.stats.get(word, []):
            _, found, cell = report.nodeid.partition("test_parity.py::test_parity[")
            if found:
                behaviour, _, where = cell.rstrip("]").partition("-")
                table[behaviour][where] = shown
    if not table:
        return
    columns = sorted({where for row in table.values() for where in row})
    terminalreporter.section("parity")
    terminalreporter.write_line(f"{'':48}{'  '.join(columns)}")
    for behaviour, row in table.items():
        cells = "  ".join(f"{row.get(c, '.'):{len(c)}}" for c in columns)
        terminalreporter.write_line(f"{behaviour:48}{cells}")
