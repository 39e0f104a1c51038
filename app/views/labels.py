"""What people said of a model's parameters: a label as pages show it, and the page of what it is about."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from lexiscope.app import addresses
from lexiscope.app.views.label_lists import InOurs, in_ours
from lexiscope.app.views.tokens import OMIT_NONE
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_address import LabelAddress, parse_label_address
from lexiscope.precompute.index.label_files import FiledLabel

SHOWN = 20  # labels on the page of a parameter

LABELS: Any = Field(
    exclude_if=lambda value: value is None, description="What people said of it, the first 20; left out if nothing"
)
OF_LIST: Any = Field(exclude_if=lambda value: value is None, description="Only where the label carries a list")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLabel:
    """A label with the fields of its file, and where it stands."""

    address: str
    title: str
    text: str
    source: str
    url: str
    file: str
    entry: Annotated[int, Field(description="Which of the file, from 1")]
    pairs: Annotated[list[list[str]] | None, OMIT_NONE] = None
    tokens: Annotated[list[str] | None, OMIT_NONE] = None
    end: Annotated[str | None, OF_LIST] = None
    lens: Annotated[str | None, OF_LIST] = None
    preset: Annotated[str | None, Field(exclude_if=lambda value: value is None, description="Of pairs")] = None
    in_ours: Annotated[
        list[InOurs] | None,
        Field(
            exclude_if=lambda value: value is None,
            description="Of the label's list, by the lists of ours that it is about: how much of it is there",
        ),
    ] = None

    @property
    def about(self) -> LabelAddress:
        return parse_label_address(self.address)

    @property
    def ranks(self) -> list[int | None]:
        """The ranks of the entries of its list in the one of our lists that has most of them."""
        length = len(self.pairs or self.tokens or ())
        return max(self.in_ours or (), key=lambda of: of.up_to_space).ranks if self.in_ours else [None] * length

    @property
    def name(self) -> str:
        """What it is about, for people."""
        return parameter_name(self.about)


def labels_of(index: Index, filed: Iterable[FiledLabel]) -> list[ShownLabel] | None:
    """Return the first labels of one parameter, for its page; None where nobody said anything."""
    return [shown(index, label) for label in islice(filed, SHOWN)] or None


def shown(index: Index, filed: FiledLabel) -> ShownLabel:
    label = filed.label
    has_list = label.pairs is not None or label.tokens is not None
    return ShownLabel(
        address=label.address,
        title=label.title,
        text=label.text,
        source=label.source,
        url=label.url,
        file=filed.file,
        entry=filed.entry,
        pairs=label.pairs,
        tokens=label.tokens,
        end=label.end if has_list else None,
        lens=label.lens if has_list else None,
        preset=label.preset if label.pairs is not None else None,
        in_ours=in_ours(index, label) if has_list else None,
    )


def parameter_name(about: LabelAddress) -> str:
    """L16H6 VO, L10N2361 ff_value, L8H11.5; "the model" of a remark on all of it."""
    where = f"L{about.layer}{'N' if about.parameter == 'neuron' else 'H'}{about.index}"
    match about.parameter:
        case "":
            return "the model"
        case "subhead":
            where += f".{about.sub}"
        case "direction":
            where += f".svd{about.sub}"
    if about.kind in ("head", "ff", "sub", "svd"):
        return where
    return f"{where} {about.kind.upper() if about.parameter == 'head' else about.kind}"


def page_of(about: LabelAddress, lens: str | None = None) -> str:
    """The address of the page of a parameter, where its labels are shown."""
    if not about.kind:
        return addresses.link("labels", about.model)
    numbers = [number for number in (about.layer, about.index, about.sub) if number is not None]
    if about.kind in ("vo", "qk"):
        return addresses.link("pairs", about.model, *numbers, about.kind, lens=lens)
    return addresses.link(about.parameter, about.model, *numbers, lens=lens)
