"""What live pages tell of a run: a module for each panel, and the table of them."""

from lexiscope.precompute.live.panels import attention, attribution, coverage, evolution, neurons, patterns
from lexiscope.precompute.live.panels.panel import Panel

PANELS: tuple[Panel, ...] = (
    evolution.PANEL,
    attention.PANEL,
    patterns.PANEL,
    neurons.PANEL,
    coverage.PANEL,
    attribution.PANEL,
)
