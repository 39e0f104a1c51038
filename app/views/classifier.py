"""The pages of a classification head: what each label reads, and the vectors of the step before."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from app.views.checks import check_length, finite
from app.views.difference import minus_of, relative
from app.views.tokens import ViewOfModel, scored_tokens
from app.views.vectors import Vector
from precompute.index.index import Index
from precompute.index.not_stored import check_lens

MOST_LABELS = 50  # on one page

LABEL: Any = Field(description="What the checkpoint calls it; null of a vector of `dense`")
SUBTRACTED: Any = Field(
    exclude_if=lambda value: value is None,
    description="Only of a difference: whether its base has such a head, too; else the tuned model's is shown",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadVector:
    kind: str  # classifier, dense
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


def classifier_view(
    index: Index, kind: str = "classifier", number: int | None = None, lens: str = "dot", k: int | None = None
) -> ClassifierView:
    """One vector, or those of all labels, of very many the first."""
    check_lens(index, lens)
    check_length(k)
    entry = index.classifier().entry
    numbers = range(min(len(entry.labels), MOST_LABELS)) if number is None else [number]
    return ClassifierView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        lens=lens,
        labels=entry.labels,
        dense=entry.dense,
        subtracted=entry.subtracted if index.stored.difference else None,
        vectors=[_vector(index, kind, each, lens, k) for each in numbers],
    )


def _vector(index: Index, kind: str, number: int, lens: str, k: int | None) -> HeadVector:
    head = index.classifier()
    lists, base_norm = head.vector(kind, number, lens), head.base_norm(kind, number)
    unchanged = base_norm is not None and lists.norm == 0
    top, bottom = ([] if unchanged else scored_tokens(index.tokens, ids[:k].tolist(), scores[:k].tolist())
                   for ids, scores in zip(lists.ids, lists.scores, strict=True))  # fmt: skip
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
