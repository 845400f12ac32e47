"""Read streams and transcripts as Arrow tables, without a Python object for each value."""

from __future__ import annotations

from claude_wire.columns import usage
from claude_wire.columns.ranges import Range, files, parts, plan
from claude_wire.columns.report import Problem, Report
from claude_wire.columns.scan import Scan, scan
from claude_wire.columns.tables import columns_of

__all__ = ["Problem", "Range", "Report", "Scan", "columns_of", "files", "parts", "plan", "scan", "usage"]
