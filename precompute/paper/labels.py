"""Turn the lists that the paper printed into labels of gpt2-medium and gpt2, without entries that are doubtful in
print."""

from collections.abc import Iterable, Iterator
from typing import Any

from lexiscope.precompute.index.label_files import FiledLabel, Label
from lexiscope.precompute.paper import lists

FILE = "the paper"  # the name under which these labels are shown, in place of a file's


def paper_labels() -> tuple[FiledLabel, ...]:
    every = [*_of_heads(), *_of_neurons(), *_of_lookups(), *_of_fine_tuning()]
    return tuple(FiledLabel(label, FILE, entry) for entry, label in enumerate(every, 1))


def _first_words(texts: Iterable[str]) -> str:
    """Return the first entries of a list as a title, where the paper gives none."""
    return ", ".join(text.strip() for text in texts)


def _label(address: str, title: str, section: str, text: str, **entries: Any) -> Label:
    source = f"{lists.CITATION}, appendix {section}"
    return Label(address=address, title=title, text=text, source=source, url=lists.URL, **entries)


def _of_heads() -> Iterator[Label]:
    for head in lists.heads():
        sure = [list(pair) for at, pair in enumerate(head.pairs) if at not in head.low_confidence]
        said = [f"{head.note[:1].upper()}{head.note[1:]}." if head.note else ""]
        said += [f"{len(sure)} of the 50 printed pairs."]
        if doubtful := len(head.low_confidence):
            said += [f"{doubtful} more {'is' if doubtful == 1 else 'are'} from garbled print and left out."]
        if head.without_same_token:
            said += ["Pairs of the same token, up to case and space, were left out in print."]
        if unknown := len({pair for pair, _ in head.space_uncertain} - head.low_confidence):
            said += [f"In {unknown} of them a leading space may be lost."]
        number, _, title = head.section.partition(" ")
        if head.matrix == "qk":
            title = _first_words(" → ".join(text.strip() for text in pair) for pair in sure[:3])
        address = f"{head.model}/{head.matrix}/{head.layer}/{head.head}"
        preset = "distinct" if head.without_same_token else "all"
        yield _label(address, title, number, " ".join(filter(None, said)), pairs=sure or None, preset=preset)


def _of_neurons() -> Iterator[Label]:
    text = (
        "One of 15 random neurons whose key and value have at least 15 % of their first 100 tokens in common. Up to 30 "
        "are printed of each; in some tables rows may be exchanged between key and value."
    )
    for neuron in lists.neurons():
        number = neuron.section.partition(" ")[0]
        for kind, printed in (("ff_key", neuron.key), ("ff_value", neuron.value)):
            tokens = [token for token in printed if token not in neuron.uncertain]
            address = f"{neuron.model}/{kind}/{neuron.layer}/{neuron.neuron}"
            yield _label(address, _first_words(tokens[:3]), number, text, tokens=tokens)


def _of_lookups() -> Iterator[Label]:
    for lookup in lists.lookups():
        for found in lookup.results:
            number, words = lookup.section.partition(" ")[0], ", ".join(lookup.seeds)
            text = f"Found by the seed words {words}: its value has rank {found.rank} of all."
            address = f"{lookup.model}/ff_value/{found.layer}/{found.neuron}"
            yield _label(address, f"About {words}", number, text, tokens=list(found.tokens))


def _of_fine_tuning() -> Iterator[Label]:
    """Return labels for lists of fine-tuned vectors. They are about the model as a whole, because the paper does not
    say which vectors it printed."""
    for kind in dict.fromkeys(each.kind for each in lists.differences()):
        tables = [each for each in lists.differences() if each.kind == kind]
        words = dict.fromkeys(word.strip() for each in tables for word in (*each.diff[:6], *each.minus_diff[:6]))
        what = f"{kind} of layers 9 to 11 after fine-tuning on IMDB reviews, less before, in {len(tables)} tables"
        if tables[0].layer is None:
            what = "The vectors of the labels POSITIVE and NEGATIVE of GPT-2 fine-tuned on IMDB reviews, as words"
        text = f"{what}, among them: {', '.join(words)}"
        short = f"{text[:3000].rpartition(',')[0]}." if len(text) > 3000 else f"{text}."
        yield _label(tables[0].model, f"Fine-tuned on reviews: {kind}", "D", short)
