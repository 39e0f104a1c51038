"""What all routes share: the settings, the models, the templates, the static files and the counters.
Made once by server.py; there is no state outside of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

from app.html.assets import Asset, fingerprint, folder, load_assets
from app.html.rendering import Renderer
from app.library.library import Library
from app.metrics import Metrics
from app.middleware.streams import StreamLimit
from app.settings import Settings
from app.turns import Turns
from app.workers.client import LiveClient
from precompute.errors import IndexFault


@dataclass(frozen=True)
class Site:
    settings: Settings
    library: Library
    renderer: Renderer
    assets: Mapping[str, Asset]
    live: LiveClient  # the worker behind live pages
    salt: str  # changes with this program, its templates, its static files and its settings
    streams: StreamLimit  # of CSV and events
    metrics: Metrics = field(default_factory=Metrics)
    turns: Turns = field(default_factory=Turns)  # of those who ask for whole lists

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that can be read; none while the data folder cannot."""
        try:
            return tuple(card.model for card in self.library.cards() if card.n_layers)
        except IndexFault:
            return ()


def open_site(settings: Settings) -> Site:
    assets = load_assets(folder("static"))
    parts = [program_version(), fingerprint(folder("templates")), settings.model_dump_json()]
    parts += [asset.url for asset in assets.values()]
    library = Library(settings.data, settings.refresh)
    return Site(
        settings,
        library,
        Renderer({name: asset.url for name, asset in assets.items()}),
        assets,
        LiveClient(settings, library),
        hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16],
        StreamLimit(settings.streams),
    )


def program_version() -> str:
    try:
        return version("lexiscope")
    except PackageNotFoundError:
        return "0"
