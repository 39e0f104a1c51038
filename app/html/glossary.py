"""The words of the field in plain language: they feed the help page and the tooltips.
Longer explanations, with the formulas, are in templates/help.html."""

from typing import NamedTuple


class Term(NamedTuple):
    name: str
    text: str  # one or two sentences, complete without the help page


TERMS = {
    "token": Term(
        "token",
        "A piece of text that the model reads and writes as one unit. ␣ marks a space, which is part of the token; "
        "in BERT's vocabulary, words have none, and ## marks what goes on with a word.",
    ),
    "W_E": Term(
        "W_E, the embedding", "The matrix with one row of d_model numbers for each token: how tokens enter the model."
    ),
    "residual-stream": Term(
        "residual stream", "The running sum of d_model numbers at each position that every layer reads and adds to."
    ),
    "score": Term(
        "score", "How strongly a vector points at a token: the larger, the more; negative means away from it."
    ),
    "rank": Term("rank", "The place of a token in a list sorted by score; 1 is the best."),
    "end": Term(
        "top and bottom",
        "The largest scores and the most negative ones. Both matter: a neuron can be pushed either way.",
    ),
    "encoder": Term(
        "encoder",
        "A model whose positions see all others, before and after them, as in BERT; in a decoder such as GPT-2 they "
        "see only those before. Its tokenizer puts a mark before a text and one after it, in BERT [CLS] and [SEP].",
    ),
    "layer": Term("layer", "One of the model's storeys, numbered from 0; each has attention heads, then neurons."),
    "neuron": Term(
        "neuron", "One unit of a feed-forward layer: it looks for its key in the stream and adds its value to it."
    ),
    "ff_key": Term("key (ff_key)", "What a neuron reads: it is active where the stream points the way its key does."),
    "ff_value": Term("value (ff_value)", "What a neuron writes: added to the stream in proportion to its activity."),
    "ff_up": Term("up (ff_up)", "A gated neuron's second input: multiplied with the gate, it sets strength and sign."),
    "head": Term("head", "One attention unit: QK decides where it looks, VO what it carries from there."),
    "vo": Term("VO", "W_V W_O of a head: when it attends to the token it reads, it promotes the token it writes."),
    "qk": Term("QK", "W_Q W_Kᵀ of a head: a position with the query token attends to one with the key token."),
    "subhead": Term("subhead", "One of a head's d_head channels: column j of W_Q, W_K, W_V and row j of W_O."),
    "w_q": Term("w_q", "A column of W_Q: reads the position that attends."),
    "w_k": Term("w_k", "A column of W_K: reads the position that may be attended to."),
    "w_v": Term("w_v", "A column of W_V: reads what is carried from the position attended to."),
    "w_o": Term("w_o", "A row of W_O: writes what was carried into the stream."),
    "lens": Term("lens", "How a score is read: dot or cosine. The parameters are the same, the ranking differs."),
    "dot": Term(
        "dot lens",
        "score = v · e, the paper's; the model also applies a norm with a gain per dimension, left out here. "
        "Tokens with unusual embeddings can crowd the lists.",
    ),
    "cosine": Term(
        "cosine lens",
        "Token embeddings are centred and set to length one first, so only their direction counts. "
        "Tokens with short embeddings, often untrained ones, gain.",
    ),
    "preset": Term("preset", "Which pairs compete: all, distinct (not one word in two spellings) or words."),
    "all": Term("preset all", "Every pair of tokens."),
    "distinct": Term("preset distinct", "The two tokens differ even without case, surrounding space and ##."),
    "words": Term(
        "preset words",
        "Distinct, and both are a space (BERT's: no space and no ##) and three or more ASCII letters; a word's "
        "beginning may pass.",
    ),
    "norm": Term("norm", "The length of the vector: how much it can matter, whatever it points at."),
    "coherence": Term(
        "coherence",
        "How alike the first 20 tokens of a list are, hubs left out: the mean cosine of their centred embeddings, "
        "usually 0 to 1. A head's is the mean of its two columns; – means that too few tokens are left.",
    ),
    "alike": Term(
        "alike", "How alike the tokens of a list are: the mean cosine between their centred embeddings, 1 at most."
    ),
    "similarity": Term(
        "similarity", "How much the top 100 tokens of a neuron's key and value overlap: 1 all, 0 none (Jaccard)."
    ),
    "nearest": Term(
        "nearest tokens",
        "Tokens whose centred embeddings point most nearly the same way; the number is their cosine, 1 at most.",
    ),
    "reads": Term("reads", "The vector looks for this token: it is at the top of a key's or query's list."),
    "avoids": Term("avoids", "The vector looks for the opposite of this token: it is at the bottom of its list."),
    "writes": Term("writes", "The vector promotes this token: it is at the top of a value's or output's list."),
    "positive": Term("turns positive on", "At the top of up's list: with this token the neuron writes its value."),
    "negative": Term(
        "turns negative on", "At the bottom of up's list: with this token the neuron writes against its value."
    ),
    "suppresses": Term("suppresses", "The vector speaks against this token: it is at the bottom of its list."),
    "seeds": Term(
        "seed words",
        "A few words that stand for a concept; vectors are ranked by the dot product with their average embedding.",
    ),
    "evolution": Term(
        "evolution",
        "What the stream would predict after each step of a run, by the model's own last step; in an encoder that "
        "predicts no tokens, which tokens it is nearest to.",
    ),
    "attention": Term(
        "attention",
        "From each position, how much of what a head carries comes from each one before, in an encoder also after it.",
    ),
    "patterns": Term(
        "patterns and messages",
        "What a position looks for at a head (h W_Q W_Kᵀ), and what one attended to sends (h W_V W_O), as words.",
    ),
    "neurons": Term("active neurons", "Those that move the stream most in a run: coefficient times norm of the value."),
    "coverage": Term(
        "coverage (R_k)", "The share of a hidden state's first k tokens that the lists of the most active vectors hold."
    ),
    "reading": Term(
        "other readings",
        "The same vector or head with the norms' gains folded in, or compared with tokens after the first MLP.",
    ),
    "overlap": Term(
        "overlap", "What two lists of one length share, divided by what either has: 1 all, 0 none (Jaccard)."
    ),
    "worker": Term(
        "worker", "The process with the model in memory that computes live pages; stored pages do without it."
    ),
    "build": Term("build", "A fingerprint of everything the lists depend on: equal builds show equal lists."),
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
}

_BEGINS = "Put before every text by the tokenizer; heads often look there when they find nothing else."
_ENDS = "Put after every text by the tokenizer, and between two; heads often look there when they find nothing else."
# Marks of encoders' vocabularies, by what stands between their brackets: BERT's, and RoBERTa's where those differ.
MARKS = {
    "CLS": _BEGINS,
    "s": _BEGINS,
    "SEP": _ENDS,
    "/s": _ENDS,
    "MASK": "Stands where the model is to guess a token.",
    "mask": "Stands where the model is to guess a token.",
    "PAD": "Fills up the shorter texts of a batch.",
    "pad": "Fills up the shorter texts of a batch.",
    "UNK": "Stands for what the vocabulary cannot write.",
    "unk": "Stands for what the vocabulary cannot write.",
}


def tip(key: str) -> str:
    return TERMS[key].text


def explain_mark(token: str) -> str:
    """What a token of an encoder is for that is no text; "" of all others."""
    name = token[1:-1] if token[:1] + token[-1:] in ("[]", "<>") else ""
    if name.startswith("unused") and name[6:].isdecimal():
        return "Kept free by the makers of the vocabulary: no text has it, and training has hardly moved it."
    return MARKS.get(name, "")
