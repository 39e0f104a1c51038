"""The panels of a run, which are the parts of its page: a module for each, and the table of all of them."""

from lexiscope.precompute.live.panels import (
    attention,
    attribution,
    coverage,
    evolution,
    heads,
    neurons,
    patterns,
    positions,
    sheet,
    sweep,
    updates,
)
from lexiscope.precompute.live.panels.panel import Panel

PANELS: tuple[Panel, ...] = (
    evolution.PANEL,
    attention.PANEL,
    patterns.PANEL,
    sheet.PANEL,
    updates.PANEL,
    neurons.PANEL,
    heads.PANEL,
    positions.PANEL,
    coverage.PANEL,
    attribution.PANEL,
    sweep.PANEL,
)
