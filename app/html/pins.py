"""Read the first words of the parameters that an address pins, for the bar above the page's own words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lexiscope.app.html.tokens import plain, plain_pairs
from lexiscope.app.lists.labels import page_of
from lexiscope.app.lists.named_lists import NamedList, lists_of
from lexiscope.app.lists.worth_reading import HEAD_PRESET, head_lens
from lexiscope.app.urls import turned
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.parameter_names import parameter_named

if TYPE_CHECKING:
    from lexiscope.app.html.rendering import PageRequest

WORDS, PAIRS = 5, 3  # how many words, or pairs, of each list a pin shows


@dataclass(frozen=True)
class Pin:
    name: str
    address: str
    words: str  # of each list, after its name; or why they cannot be read
    without: str  # the address of the page without this pin


def of_page(page: "PageRequest") -> Iterator[Pin]:
    """Yield the pinned parameters. One whose layer is not built, or damaged, says so and is no fault of the page."""
    index, names = page.index, page.query["pin"].split(",")
    assert index
    lens = page.lens if page.lens in index.stored.lenses else index.stored.lens
    for name in names:
        place = parameter_named(index.manifest.model, index.shape, name)
        is_head = place.kind == "head"
        try:
            lists = lists_of(
                index, place, head_lens(index) if is_head else lens, HEAD_PRESET, PAIRS if is_head else WORDS
            )
            words = " · ".join(map(_words, lists.lists))
        except LexiscopeError as error:
            words = str(error)
        others = ",".join(other for other in names if other != name) or None
        yield Pin(name, page_of(place, lens), words, turned(page.canonical, pin=others))


def _words(of: NamedList) -> str:
    pairs = [entry for entry in of["top"] if "from" in entry]
    return f"{of['name']} {plain_pairs(pairs) if pairs else plain(of['top'])}"  # type: ignore[arg-type]
