"""A report as HTML for notebooks. All names are foreign: they are escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deadweight._report import Finding, Report, Row

_RIGHT = "text-align:right;white-space:nowrap"
_LEFT = "text-align:left"


def report(of: Report) -> str:
    """Return the ledger as a table with bars, and the findings below it."""
    largest = max((row.ns for row in of.ledger), default=0)
    ledger = "".join(_row(row, largest) for row in of.ledger)
    total = f"<tr><td style='{_RIGHT}'><b>{_time(of.wall_ns)}</b></td><td></td><td></td>"
    total += f"<td style='{_LEFT}'><b>wall time</b></td><td></td></tr>"
    findings = "".join(_finding(finding) for finding in of.findings)
    found = f"<ol>{findings}</ol>" if findings else "<p>No hidden cost was found.</p>"
    command = escape(" ".join(of.command))
    return f"<div><code>{command}</code><table>{ledger}{total}</table>{found}</div>"


def _row(row: Row, largest: int) -> str:
    width = round(120 * row.ns / largest) if largest else 0
    bar = f"<div style='background:#4878a8;height:0.8em;width:{width}px'></div>"
    name = escape(row.account.replace("-", " "))
    return (
        f"<tr><td style='{_RIGHT}'>{_time(row.ns)}</td><td style='{_RIGHT}'>{row.share:.1%}</td>"
        f"<td style='width:120px'>{bar}</td><td style='{_LEFT}'>{name}</td>"
        f"<td style='{_LEFT}'>{escape(row.note)}</td></tr>"
    )


def _finding(finding: Finding) -> str:
    site = finding.sites[0] if finding.sites else None
    place = f"{site.function} ({site.file}:{site.line})" if site and site.file else ""
    return (
        f"<li><b>{escape(finding.title)}</b>: saves {finding.low:.0%} to {finding.high:.0%}, "
        f"{escape(finding.how)}. {escape(finding.text)} <code>{escape(place)}</code><br>"
        f"{escape(finding.remedy)}</li>"
    )


def _time(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= size:
            return f"{ns / size:.1f} {unit}"
    return f"{ns} ns"
