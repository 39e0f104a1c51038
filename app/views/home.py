"""The home page: which models there are, and how far each is built.
Opening them is for library.py."""

from app.library import Library
from app.page_types import HomeView


def home_view(library: Library) -> HomeView:
    return HomeView.of(models=library.cards())
