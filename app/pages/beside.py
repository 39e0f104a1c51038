"""Show two parameters of a model, or of two models with one vocabulary, side by side, and the tokens they share."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from lexiscope.app.formats.pair_tables import pair_tables
from lexiscope.app.formats.table import Column, Table, both_ends, constant
from lexiscope.app.lists.checks import VECTOR_ENTRIES, list_length
from lexiscope.app.lists.named_lists import NamedParameter, Shared, lists_of, shared_tokens
from lexiscope.app.lists.view import ViewOfModel, of_index
from lexiscope.app.pages.page import Address, AnyPreset, LensArguments, ModelSite, Page, entries_shown
from lexiscope.precompute.errors import BadRequest, LexiscopeError
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_address import LabelAddress
from lexiscope.precompute.index.parameter_names import parameter_named

NAME_LENGTH = 300
OTHER = "A parameter of this model, such as L25N382, 8.11 or L8H11.svd5; "


class BesideAt(Address):
    pattern = "beside"


class BesideArguments(LensArguments):
    a: Annotated[str, Field(max_length=NAME_LENGTH, description=OTHER + "the first", examples=["L25N382"])] = ""
    b: Annotated[
        str,
        Field(
            max_length=NAME_LENGTH,
            description=OTHER + "or of another model with the same vocabulary, gte-small/L8N674: the second",
            examples=["L27N1186"],
        ),
    ] = ""
    preset: AnyPreset = "all"
    k: Annotated[int | None, entries_shown(VECTOR_ENTRIES)] = None
    usual: ClassVar[Mapping[str, Any]] = {"lens": "dot", "k": VECTOR_ENTRIES}

    def query(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, **super().query()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideView(ViewOfModel):
    lens: str
    preset: str
    a: NamedParameter | None  # None if it is not given
    b: NamedParameter | None
    shared: Annotated[list[Shared], Field(description="By list and end of a, and by list and end of b")]

    @property
    def sides(self) -> list[NamedParameter]:
        return [side for side in (self.a, self.b) if side]

    def in_other(self, side: NamedParameter, name: str, end: str) -> tuple[int, str]:
        """Return how many tokens of a list of a side the other side shows, too, and a text that says in which lists."""
        mine, other = ("a", "b") if side is self.a else ("b", "a")
        found: list[Any] = [of for of in self.shared if (of[mine], of[f"{mine}_end"]) == (name, end)]  # type: ignore
        tokens = {token["id"] for of in found for token in of["tokens"]}
        return len(tokens), ", ".join(f"{len(of['tokens'])} in {of[other]} {of[f'{other}_end']}" for of in found)

    def marked(self, entries: list[Any]) -> set[Any]:
        """Return the keys of those rows of a list that hold a token of the other side's lists."""
        others = {token["id"] for of in self.shared for token in of["tokens"]}
        tokens = {entry["id"] for entry in entries if "id" in entry} & others
        pairs = {(pair["from"]["id"], pair["to"]["id"]) for pair in entries if "from" in pair}
        return tokens | {pair for pair in pairs if not others.isdisjoint(pair)}

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "lens": self.lens, "preset": self.preset}

    def shared_table(self) -> Table:
        """Make a table of the tokens that a list of either side shares with one of the other."""
        names = [side.name for side in self.sides] if self.shared else ["a", "b"]
        columns = (
            Column("a", get=lambda of: f"{of['a']} {of['a_end']}", heading=names[0]),
            Column("b", get=lambda of: f"{of['b']} {of['b_end']}", heading=names[-1]),
            Column("shared", "number", get=lambda of: len(of["tokens"])),
            Column("tokens", "tokens", audience="people"),
        )
        return Table(" and ".join(names) + ", shared tokens", columns, self.shared)

    def tables(self) -> list[Table]:
        tables = []
        for at, side in zip("ab", self.sides, strict=False):
            which = [constant("side", at), constant("of", side.model), constant("parameter", side.name)]
            for of in side.lists:
                name, title = of["name"], f"{side.model}, {side.name}"
                if name in ("vo", "qk"):
                    how = f"{self.lens}, {self.preset}"
                    tables += pair_tables(title, name, how, of["top"], of["bottom"], which)  # type: ignore[arg-type]
                else:
                    which_list = [*which, constant("vector", name)]
                    tables += both_ends(f"{title}, {name} ({self.lens})", which_list, of["top"], of["bottom"])
        return [*tables, self.shared_table()] if self.shared else tables


def beside(site: ModelSite, at: BesideAt, ask: BesideArguments) -> BesideView:  # noqa: ARG001
    """Two parameters side by side: their lists, and which tokens stand in both."""
    length = list_length(site.index, ask.k, VECTOR_ENTRIES, site.index.manifest.k)
    a, b = (
        lists_of(*_named(site, text), ask.lens, ask.preset, length, site.outside, site.outside_pairs) if text else None
        for text in (ask.a.strip(), ask.b.strip())
    )
    return BesideView(
        **of_index(site.index),
        lens=ask.lens,
        preset=ask.preset,
        a=a,
        b=b,
        shared=shared_tokens(site.index, a, b, site.left_out(ask.lens)) if a and b else [],
    )


def _named(site: ModelSite, text: str) -> tuple[Index, LabelAddress]:
    """Return the index and the parameter that a text names: of the page's model, or of one that stands before a slash
    and has the same vocabulary."""
    index, (model, slash, name) = site.index, text.partition("/")
    if slash and model in site.library.names():
        index, text = site.library.index(model), name
    own, shape = site.index.manifest.model, index.shape
    if not _same_vocabulary(index, site.index):
        others = [other for other in site.library.names() if other != own and _fits(site, other)]
        works = f"{own} has that of {', '.join(others)}" if others else f"no other model here has that of {own}"
        raise BadRequest(f"{model} and {own} have different vocabularies, so that no token is the same: {works}")
    return index, parameter_named(index.manifest.model, shape, text)


def _same_vocabulary(a: Index, b: Index) -> bool:
    return a is b or (len(a.tokens) == len(b.tokens) and a.tokens.texts == b.tokens.texts)


def _fits(site: ModelSite, other: str) -> bool:
    with suppress(LexiscopeError):
        return _same_vocabulary(site.library.index(other), site.index)
    return False


BESIDE = Page(
    name="beside", title="Two parameters side by side", at=BesideAt, arguments=BesideArguments, view=BesideView,
    make=beside, version=lambda site: site.library.version(),
)  # fmt: skip
