"""Lines as columns: Arrow tables of streams and transcripts, without a Python object for any value."""

from __future__ import annotations

from claude_wire.tables import usage
from claude_wire.tables.columns import columns_of
from claude_wire.tables.ranges import Range, plan
from claude_wire.tables.report import Problem, Report
from claude_wire.tables.scan import Scan, scan

__all__ = ["Problem", "Range", "Report", "Scan", "columns_of", "plan", "scan", "usage"]
