"""Read the glossary, docs/reading/glossary.md, whose texts are also the tooltips of a page's words, and name kinds of
vectors and special tokens."""

import re
from typing import NamedTuple

from lexiscope.app.html.assets import folder


class Term(NamedTuple):
    name: str
    text: str  # one or two sentences that are understood without the help pages


# An entry of docs/reading/glossary.md: its key, which links and tooltips name it by, its name and its text.
ENTRY = re.compile(r'^- <a.id="([^"]+)">[^*]*\*\*([^*]+)\*\*: (.+(?:\n  .+)*)$', re.MULTILINE)
_GLOSSARY = (folder("reading") / "glossary.md").read_text("utf-8")
TERMS = {
    key: Term(name.replace("\n  ", " "), text.replace("\n  ", " ")) for key, name, text in ENTRY.findall(_GLOSSARY)
}

ROLES = {
    "reads": "Read by",
    "writes": "Written by",
    "avoids": "Avoided by",
    "suppresses": "Suppressed by",
    "positive": "Up turns positive on it",
    "negative": "Up turns negative on it",
}

KINDS = {
    "ff_key": "neuron keys",
    "ff_up": "neuron ups",
    "ff_value": "neuron values",
    "w_q": "subhead queries",
    "w_k": "subhead keys",
    "w_v": "subhead values",
    "w_o": "subhead outputs",
    "vo_in": "VO directions read",
    "vo_out": "VO directions written",
    "qk_query": "QK query directions",
    "qk_key": "QK key directions",
}

# What vectors of a kind do, as people choose among kinds.
KIND_WORDS = {
    "ff_key": "what neurons read",
    "ff_up": "what sets their strength",
    "ff_value": "what neurons write",
    "w_q": "what heads ask for",
    "w_k": "what heads are found by",
    "w_v": "what heads take up",
    "w_o": "what heads write",
    "vo_in": "what heads take up, by directions",
    "vo_out": "what heads write, by directions",
    "qk_query": "what heads ask for, by directions",
    "qk_key": "what heads are found by, by directions",
}

_BEGINS = "Put before every text by the tokenizer; heads often look there when they find nothing else."
_ENDS = "Put after every text by the tokenizer, and between two; heads often look there when they find nothing else."
# Special tokens of encoders, by the text between their brackets: BERT's and RoBERTa's, in small letters.
MARKS = {
    "cls": _BEGINS,
    "s": _BEGINS,
    "sep": _ENDS,
    "/s": _ENDS,
    "mask": "Stands where the model is to guess a token.",
    "pad": "Fills up the shorter texts of a batch.",
    "unk": "Stands for what the vocabulary cannot write.",
}


def tip(key: str) -> str:
    return TERMS[key].text


def explain_mark(token: str) -> str:
    """Explain the purpose of an encoder's special token, such as [CLS]; return "" for any other token."""
    name = token[1:-1] if token[:1] + token[-1:] in ("[]", "<>") else ""
    if name.startswith("unused") and name[6:].isdecimal():
        return "Kept free by the makers of the vocabulary: no text has it, and training has hardly moved it."
    return MARKS.get(name.lower(), "")
