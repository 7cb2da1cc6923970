"""Weighs a native program's time: where its wall time goes, and which part of it does no work.

``weigh`` runs a command, ``report`` reads a recording or a report, ``rows`` makes tables of many.
The work is done by the command ``deadweight``, which is part of the package.
"""

from deadweight._command import DeadweightError
from deadweight._report import Build, CleanRuns, Count, Finding, Hazard, Report, Row, Site
from deadweight._run import report, weigh
from deadweight._tables import TABLES, rows, schema

__all__ = [
    "TABLES",
    "Build",
    "CleanRuns",
    "Count",
    "DeadweightError",
    "Finding",
    "Hazard",
    "Report",
    "Row",
    "Site",
    "report",
    "rows",
    "schema",
    "weigh",
]
