"""Show the classification head of a checkpoint that has one: what each label reads, and the vectors of the dense layer
before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from lexiscope.app.formats.table import Table, both_ends, constant
from lexiscope.app.lists.checks import VECTOR_ENTRIES, finite, list_length
from lexiscope.app.lists.difference import relative
from lexiscope.app.lists.vectors import Vector, cosines_of
from lexiscope.app.lists.view import ViewOfModel, of_index, scored_tokens
from lexiscope.app.pages.page import Address, LensArguments, ModelSite, Page, entries_shown
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.not_stored import check_lens

LABELS_PER_PAGE = 50  # most labels on one page

LABEL: Any = Field(description="What the checkpoint calls it; null of a vector of `dense`")
SUBTRACTED: Any = Field(
    exclude_if=lambda value: value is None,
    description="Only of a difference: whether its base has such a head, too; else the tuned model's is shown",
)


class ClassifierAt(Address):
    pattern = "classifier"


class ClassifierVectorAt(Address):
    pattern = "classifier/{kind:head_kind}/{index_of_kind:number}"
    kind: Annotated[
        Literal["classifier", "dense"],
        Field(description="The vectors of the labels, or of the step before them", examples=["classifier"]),
    ]
    index_of_kind: Annotated[int, Field(ge=0, description="A vector of that kind, from 0", examples=[1])]


class ClassifierArguments(LensArguments):
    k: Annotated[int | None, entries_shown(VECTOR_ENTRIES)] = None
    usual: ClassVar[Mapping[str, Any]] = {"lens": "dot", "k": VECTOR_ENTRIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadVector:
    kind: str  # classifier or dense, the layer before it
    index: int
    label: Annotated[str | None, LABEL]
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierView(ViewOfModel):
    lens: str
    labels: Annotated[tuple[str, ...], Field(description="Of the vectors of `classifier`, in order")]
    dense: Annotated[int, Field(description="How many vectors the step before the labels has; 0: there is none")]
    subtracted: Annotated[bool | None, SUBTRACTED] = None
    vectors: list[HeadVector]

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "lens": self.lens}

    def tables(self) -> list[Table]:
        """Return a table of every vector on the page, named by its label or its number."""
        tables: list[Table] = []
        for each in self.vectors:
            what = f"{self.model}, {each.kind} {each.index}{f', {each.label}' if each.label else ''} ({self.lens})"
            which = (constant("kind", each.kind), constant("index", each.index), constant("label", each.label or ""))
            tables += both_ends(what, which, each.vector.top, each.vector.bottom)
        return tables


def classifier(site: ModelSite, at: ClassifierAt, ask: ClassifierArguments) -> ClassifierView:  # noqa: ARG001
    """The classification head of a checkpoint that has one: what every label reads, as words."""
    labels = site.index.classifier().entry.labels
    return _view(site, ask, "classifier", range(min(len(labels), LABELS_PER_PAGE)))


def classifier_vector(site: ModelSite, at: ClassifierVectorAt, ask: ClassifierArguments) -> ClassifierView:
    """One vector of a classification head: a label's (`classifier`), or one of the dense layer before it (`dense`)."""
    return _view(site, ask, at.kind, [at.index_of_kind])


def _view(site: ModelSite, ask: ClassifierArguments, kind: str, numbers: range | list[int]) -> ClassifierView:
    index = site.index
    k = list_length(index, ask.k, VECTOR_ENTRIES, index.manifest.k)
    check_lens(index, ask.lens)
    entry = index.classifier().entry
    return ClassifierView(
        **of_index(index),
        lens=ask.lens,
        labels=entry.labels,
        dense=entry.dense,
        subtracted=entry.subtracted if index.stored.difference else None,
        vectors=[_vector(index, kind, number, ask.lens, k) for number in numbers],
    )


def _vector(index: Index, kind: str, number: int, lens: str, k: int | None) -> HeadVector:
    head = index.classifier()
    lists, base_norm = head.vector(kind, number, lens), head.base_norm(kind, number)
    unchanged = base_norm is not None and lists.norm == 0
    cosines = cosines_of(lists.scores[:, :k], lists.norm, lens)
    top, bottom = ([] if unchanged else scored_tokens(index.tokens, ids[:k].tolist(), scores[:k].tolist(), of_end)
                   for ids, scores, of_end in zip(lists.ids, lists.scores, cosines, strict=True))  # fmt: skip
    return HeadVector(
        kind=kind,
        index=number,
        label=head.entry.labels[number] if kind == "classifier" else None,
        vector=Vector(
            top=top,
            bottom=bottom,
            norm=lists.norm,
            coherence=(finite(lists.coherence_top), finite(lists.coherence_bottom)),
            base_norm=base_norm,
            change=None if base_norm is None else relative(lists.norm, base_norm),
            unchanged=True if unchanged else None,
        ),
    )


CLASSIFIER = Page(
    name="classifier", title="Classification head", at=ClassifierAt, arguments=ClassifierArguments,
    view=ClassifierView, make=classifier,
)  # fmt: skip
CLASSIFIER_VECTOR = Page(
    name="classifier_vector", template="classifier", title="Classification head", at=ClassifierVectorAt,
    arguments=ClassifierArguments, view=ClassifierView, make=classifier_vector,
)  # fmt: skip
