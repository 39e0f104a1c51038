"""List the panels (parts of the result) of a run, in the order of their tabs."""

from collections.abc import Mapping

from lexiscope.app.pages.prompt.attention import ATTENTION
from lexiscope.app.pages.prompt.attribution import ATTRIBUTION
from lexiscope.app.pages.prompt.coverage import COVERAGE
from lexiscope.app.pages.prompt.evolution import EVOLUTION
from lexiscope.app.pages.prompt.heads import HEADS
from lexiscope.app.pages.prompt.neurons import NEURONS
from lexiscope.app.pages.prompt.panel import Panel
from lexiscope.app.pages.prompt.patterns import PATTERNS
from lexiscope.app.pages.prompt.positions import POSITIONS
from lexiscope.app.pages.prompt.sheet import SHEET
from lexiscope.app.pages.prompt.sweep import SWEEP
from lexiscope.app.pages.prompt.updates import UPDATES

PANELS: Mapping[str, Panel] = {
    panel.name: panel
    for panel in (
        EVOLUTION,
        ATTENTION,
        PATTERNS,
        SHEET,
        UPDATES,
        NEURONS,
        HEADS,
        POSITIONS,
        COVERAGE,
        ATTRIBUTION,
        SWEEP,
    )
}
