"""Run the comparison: ``make drift CLI=PATH`` or ``PYTHONPATH=tools python -m drift --help``."""

from drift.command import drift

drift(prog_name="drift")
