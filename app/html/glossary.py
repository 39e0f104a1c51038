"""Explain the words of the field in plain language, for the glossary and the tooltips. The help pages
(docs/reading/) have longer explanations, with the formulas."""

from typing import NamedTuple


class Term(NamedTuple):
    name: str
    text: str  # one or two sentences that are understood without the help pages


TERMS = {
    "token": Term("token",
        "A piece of text that the model reads and writes as one unit. ␣ marks a space, which is part of the token; "
        "in BERT's vocabulary, ## marks a token that continues a word."),
    "W_E": Term("W_E, the embedding",
        "The matrix with one row of d_model numbers for each token: how tokens enter the model."),
    "residual-stream": Term("residual stream",
        "The running sum of d_model numbers at each position that every layer reads and adds to."),
    "score": Term("score", "How strongly a vector points at a token. Larger is stronger; negative means away from it."),
    "label": Term("label",
        "What somebody said about a parameter, with who said it and where. Labels come from files that anybody can "
        "write."),
    "rank": Term("rank", "The place of a token in a list sorted by score; 1 is the best."),
    "end": Term("top and bottom",
        "The tokens with the largest scores, and those with the most negative scores. Both matter, because a neuron "
        "can be active with either sign."),
    "encoder": Term("encoder",
        "A model such as BERT, in which each position sees the whole text; in a decoder such as GPT-2, it sees only "
        "what comes before. Its tokenizer puts a special token before and after the text: in BERT [CLS] and [SEP]."),
    "layer": Term("layer", "One step of the model: attention heads, then neurons. Layers are numbered from 0."),
    "neuron": Term("neuron",
        "One unit of a feed-forward layer. It looks for its key in the stream and adds its value to the stream."),
    "ff_key": Term("key (ff_key)",
        "What a neuron reads: the neuron is active where the stream points the same way as its key."),
    "ff_value": Term("value (ff_value)",
        "What a neuron writes: it is added to the stream in proportion to the neuron's activity."),
    "ff_up": Term("up (ff_up)",
        "The second input of a gated neuron. It is multiplied with the gate and decides the strength and the sign."),
    "head": Term("head", "One attention unit: QK decides where it looks, VO what it carries from there."),
    "vo": Term("VO",
        "The matrix W_V W_O of a head. Where the head attends to the token it reads, it promotes the token it writes."),
    "qk": Term("QK",
        "The matrix W_Q W_Kᵀ of a head. A position with the query token attends to a position with the key token."),
    "subhead": Term("subhead", "One of a head's d_head channels: column j of W_Q, W_K and W_V, and row j of W_O."),
    "w_q": Term("w_q", "A column of W_Q: it reads the position that attends."),
    "w_k": Term("w_k", "A column of W_K: it reads the position that may be attended to."),
    "w_v": Term("w_v", "A column of W_V: it reads what is carried from the position attended to."),
    "w_o": Term("w_o", "A row of W_O: it writes what was carried into the stream."),
    "direction": Term("singular direction",
        "One step of a head's singular value decomposition: it reads along one direction and writes along another, σ "
        "times as strong. Directions belong to the head, while subheads depend on the axes in which its weights are "
        "stored."),
    "singular": Term("σ, singular value",
        "How strong a direction of a head is: a vector of length one along its input side comes out with length σ "
        "along its output side."),
    "singular-share": Term("share of the matrix",
        "σ² divided by the sum of all σ² of the head: how much of the matrix (its squared Frobenius norm) this "
        "direction is."),
    "direction-sign": Term("sign and order of directions",
        "Both sides of a direction may be turned around together; the sign here puts the score of largest size of "
        "the written side, or of the key, at the top. Directions with nearly equal σ may be mixed with each other."),
    "direction-coherence": Term("coherence of a direction",
        "The mean coherence of the lists of its two sides, both tops or both bottoms, whichever is larger. A list "
        "whose first tokens are no words, or hardly learned ones, counts as 0."),
    "reads-better": Term("reads better",
        "The mean coherence of a head's ten best directions compared with that of its ten best subheads. Random "
        "vectors have 0.08 on MiniLM and 0.12 on the demo, and a difference below 0.025 says nothing."),
    "vo_in": Term("vo_in", "The side of a VO direction that reads what is carried from the position attended to."),
    "vo_out": Term("vo_out", "The side of a VO direction that writes into the stream."),
    "qk_query": Term("qk_query", "The side of a QK direction that reads the position that attends."),
    "qk_key": Term("qk_key", "The side of a QK direction that reads the position that may be attended to."),
    "lens": Term("lens",
        "How a score is computed: dot or cosine. The parameters are the same, but the ranking differs."),
    "dot": Term("dot lens",
        "The paper's score, v · e, without the norm that the model applies before it reads. Tokens with unusual "
        "embeddings can crowd the lists."),
    "cosine": Term("cosine lens",
        "The mean embedding is subtracted and each token is set to length one, so only the direction of its "
        "embedding counts. Tokens with short embeddings, often untrained ones, gain."),
    "true-cosine": Term("cosine",
        "The cosine of a vector with a token's centred embedding: the score under the lens cosine, divided by the "
        "vector's length. It is at most 1; two random directions of 576 dimensions have about 0.04."),
    "preset": Term("preset", "Which pairs compete: all, distinct (not one word in two spellings) or words."),
    "all": Term("preset all", "Every pair of tokens."),
    "distinct": Term("preset distinct", "The two tokens differ even without case, surrounding space and ##."),
    "words": Term("preset words",
        "Distinct, and each token is a space (in BERT's vocabulary nothing) followed by three or more ASCII letters. "
        "The beginning of a longer word may pass."),
    "kept": Term("tokens of lists",
        "All tokens, or only whole words: a space (in BERT's vocabulary nothing), then three or more ASCII letters. "
        "Ranks stay those among all tokens."),
    "high-bias": Term("high bias",
        "Most of these tokens may be in any list, whatever it is about: they are frequent, special, hardly learned, "
        "or hubs."),
    "beforehand": Term("beforehand",
        "What the model thinks of a token before any text; rank 1 is the largest. A long row makes large scores in "
        "the lens dot, a row near the mean of all has hardly been learned, and b · W_U is the part of the logit that "
        "is always the same (b is the bias of the final norm)."),
    "vocabulary": Term("vocabulary",
        "A text or word list of your own, which `lexiscope vocabulary add` puts into the data folder. Lists then "
        "keep only the tokens that occur in it."),
    "norm": Term("norm", "The length of the vector: how much it can matter, whatever it points at."),
    "z": Term("z, and the line of chance",
        "How many standard deviations the first token's score lies above the mean score of all tokens. 99 % of "
        "random vectors stay under the line of chance, so a list above it usually means something, unless hardly "
        "more than 1 % of its layer are above."),
    "through-norm": Term("may act through the final norm",
        "This vector is among the longest 5 % of its layer, yet it hardly prefers any token: the variance of its "
        "cosines with them is below 0.7 of the layer's median, and no token stands out. It may work mostly by "
        "changing the scale of the norm."),
    "in-and-out": Term("in and out of a neuron",
        "Strengthening: the neuron writes along what it reads (cosine above 0.5); weakening: against it (below "
        "−0.5). Conditional: the gate reads something else; proportional: only the gate is along what is written, "
        "and up decides how much."),
    "coherence": Term("coherence",
        "How alike the first 20 tokens of a list are, without hubs: the mean cosine of their centred embeddings, "
        "usually 0 to 1. Random tokens have about 0; – means that too few tokens are left."),
    "readability": Term("readability",
        "How well one can name what a head does from its first 20 pairs of words, from 0 to 1. It is the mean of how "
        "alike the two words of a pair are, or how much the pair is like other pairs."),
    "hub": Term("hub",
        "A token in more than ten times as many lists as by chance, so its place in one list says little. Hubs have "
        "a dashed edge, and one switch hides them."),
    "nearest-hub": Term("hub among nearest tokens",
        "A token, such as a comma, that is near to more than ten times as many tokens as by chance. It is left out."),
    "first-pair": Term("a head's first words",
        "The first pair of two different words among the head's pairs, under the lens cosine and the preset words: a "
        "hint at what the head is about."),
    "alike": Term("alike",
        "How alike the tokens of a list are: the mean cosine between their centred embeddings. It is at most 1; "
        "random tokens have about 0."),
    "similarity": Term("similarity",
        "How many of the top 100 tokens of a neuron's key are also at the top, or at the bottom, of its value: 1 "
        "all, 0 none (Jaccard). For a subhead, v is compared with o, and q with k."),
    "shuffled": Term("shuffled",
        "What chance gives: the same number with the value of another neuron of the layer, or the vector of another "
        "subhead."),
    "difference": Term("difference",
        "Two models, tuned − base: every vector of one minus that of the other, as lists of tokens. The change "
        "points at the tokens at the top, and away from those at the bottom."),
    "change": Term("change",
        "How much fine-tuning changed a vector: |Δ| / |base|, the length of the difference over the length of the "
        "base's vector. For a head, it is that of the whole matrix (Frobenius norms)."),
    "norm-of-difference": Term("|Δ|", "The length of the difference: how far the vector moved."),
    "unchanged": Term("unchanged",
        "Both models have exactly the same numbers here. All tokens would score 0, so no list is shown."),
    "classifier": Term("classification head",
        "The part that turns the last state of a text into a label. Each label has a vector; the label whose vector "
        "the state points at most is the answer, so only differences between labels count."),
    "dense": Term("dense",
        "In encoders, a step before the labels: its vectors read the state of the first token, and the vectors of "
        "the labels read the result."),
    "nearest": Term("nearest tokens",
        "The tokens whose centred embeddings have the largest cosine with this one. The number is the cosine, at "
        "most 1."),
    "reads": Term("reads", "The vector looks for this token: the token is at the top of a key's or query's list."),
    "avoids": Term("avoids",
        "The vector looks for the opposite of this token: the token is at the bottom of its list."),
    "writes": Term("writes", "The vector promotes this token: the token is at the top of a value's or output's list."),
    "positive": Term("turns positive on",
        "The token is at the top of up's list: by the weights alone, up is positive for it."),
    "negative": Term("turns negative on",
        "The token is at the bottom of up's list: by the weights alone, up is negative for it."),
    "suppresses": Term("suppresses",
        "The token is at the bottom of the vector's list: with a positive coefficient, the vector makes it less "
        "likely."),
    "shuffled-targets": Term("shuffled targets",
        "The mean rank of wrong second words: those of the other pairs, or random words. If it is as small as the "
        "head's own mean rank, the head promotes these words whatever it reads."),
    "itself-rank": Term("itself",
        "The mean rank of the first words in what the head writes for them. If it is as small as the head's own mean "
        "rank, the head mostly copies what it reads, and similar words come along."),
    "by-chance": Term("by chance",
        "How many of the heads would have so small a mean rank if all ranks were drawn at random. Well below 1 means "
        "that chance hardly explains it."),
    "transition-score": Term("score of a transition",
        "How far the words of a pair stand out in what the neuron reads and writes: the smallest z (standard "
        "deviations above the mean of all tokens) among its vectors. It is the mean over the pairs."),
    "transition-shuffled": Term("shuffled score",
        "The score with wrong second words: those of other pairs, or random words. If it is as large as the score, "
        "any of these words will do."),
    "rank-in-up": Term("rank in up",
        "The place of the first word in the list of up, a gated neuron's second input. If it is near the bottom, the "
        "coefficient is negative, and the neuron writes the bottom of its value."),
    "seeds": Term("seed words",
        "A few words that stand for a concept. A vector's score is its dot product with their average embedding; "
        "under the lens cosine, it is the mean of its cosines with the words."),
    "fit": Term("fit",
        "How well a vector fits seed words: its dot product with the average of the words and of their 20 nearest "
        "tokens, divided by the standard deviation of its scores of all tokens. So a vector that scores all frequent "
        "tokens high does not win."),
    "cosine-with-words": Term("cosine with the words",
        "The cosine of the vector with the average of the seed words, from −1 to 1."),
    "evolution": Term("evolution",
        "What the model would predict if it stopped after each step of a run. For an encoder that predicts no "
        "tokens, it is the tokens nearest to the stream."),
    "attention": Term("attention",
        "How much of what a head carries to a position comes from each position before it; in an encoder, also from "
        "those after it."),
    "patterns": Term("patterns and messages",
        "What a position looks for at a head (h W_Q W_Kᵀ), what others find it by (h W_K W_Qᵀ), and what it sends to "
        "those that attend to it (h W_V W_O), as words. McCormick calls our 'is found by' a pattern."),
    "neurons": Term("active neurons",
        "The neurons that move the stream most in a run, by coefficient times norm of the value."),
    "first-only": Term("first token only",
        "The coefficient at the first token is at least ten times as large, in size, as at any other. Such neurons "
        "fire there whatever the token is."),
    "coverage": Term("coverage (R_k)",
        "The share of a hidden state's first k tokens that are also in the lists of the most active vectors."),
    "random-state": Term("random state",
        "What chance gives for coverage: the vectors that were active at one position, compared with the state at "
        "another position of the texts."),
    "keep-k": Term("keep-k",
        "A vector written as scores of all tokens, with all but the k scores of largest size set to 0: what is left "
        "if one reads only the first k tokens."),
    "pseudo-inverse": Term("pseudo-inverse",
        "E⁺ undoes the embedding exactly: E E⁺ is the identity. The paper, and all stored lists, use the transpose "
        "Eᵀ instead, so that scores are plain products."),
    "attribution": Term("attribution",
        "What each head and neuron added directly to the logit of a token, with the scales of the later norms kept "
        "as they are. The terms sum to the logit."),
    "logit": Term("logit",
        "A token's score before it becomes a probability. One more multiplies the token's odds by e."),
    "reading": Term("other readings",
        "The same vector or head read in another way: with the norms, with tokens as the first block or its MLP "
        "leaves them, or with the pseudo-inverse."),
    "word-source": Term("words from",
        "What stands for a word: its embedding, its embedding through the norm in front of each layer's attention, "
        "what the first block makes of it, or its row of the pseudo-inverse."),
    "overlap": Term("overlap",
        "The tokens in both of two lists, divided by the tokens in either: 1 all, 0 none (Jaccard). Two lists of "
        "random tokens share next to nothing."),
    "worker": Term("worker",
        "The process that holds the model in memory and computes live pages. Stored pages do not need it."),
    "pearson": Term("r, correlation of two vectors",
        "Pearson's r of the scores that two vectors give to all tokens that both models know: 1 alike, 0 nothing in "
        "common, −1 opposite. Vectors that read are scored with W_E, vectors that write with the unembedding."),
    "vs-similarity": Term("similarity of two layers",
        "The mean |r| over all pairs of a vector of one layer and a vector of the other. Most pairs have nothing in "
        "common, so it is small; what counts is where it is largest."),
    "vs-chance": Term("similarity of random vectors",
        "The mean |r| of random vectors. A cell with this value says nothing, and colours begin above it."),
    "assignment": Term("assignment of layers",
        "Each layer of the model with fewer layers gets its own layer of the other model, so that the sum of the "
        "similarities is as large as possible (the Hungarian method)."),
    "vs-best": Term("best matches by layer",
        "How many percent of a layer's vectors have their best match, the vector with the largest |r|, in each layer "
        "of the other model."),
    "kernel": Term("kernel",
        "The matrix that turns states of model A into states of model B. It chooses the state of B whose scores of "
        "the common tokens are nearest to those of A's state."),
    "stitching": Term("stitching",
        "Running the first layers of one model and then the last layers of another, without training. The state "
        "between them goes through the kernel."),
    "chance-of-stitching": Term("chance, of stitching",
        "How often a model would be right that always says the most frequent next token, or label, of the texts."),
    "vs-feature": Term("feature space",
        "The same with the vectors' own d_model coordinates in place of their scores. It means something only if "
        "both models grew from one, such as a fine-tune and its base."),
    "in-order": Term("in order",
        "The largest number of layers whose assigned layers have the same order in both models. Of 6 layers assigned "
        "at random it is about 3, of 12 about 5."),
    "in-place": Term("same depth",
        "How many layers are assigned to the layer at the same relative depth. By chance it is one."),
    "same-number": Term("same number",
        "How many vectors have a best match with the same number in its layer. By chance hardly any do; if most do, "
        "both models grew from the same weights."),
    "negative-r": Term("negative r",
        "The two vectors are opposite: what is at the top of one is at the bottom of the other. For q and k, v and "
        "o, up and value, or the two sides of a direction, this counts as a match only if the partner's r is "
        "negative, too."),
    "subhead-matches": Term("matches of subheads",
        "Which channels a head has is arbitrary, except for q and k with rotary positions. So single q, k, v and o "
        "of two models match only if the models are kin."),
    "direction-matches": Term("matches of directions",
        "Directions belong to the head, so they can match between models. But directions with nearly equal σ may be "
        "mixed, and only both sides together have a sign."),
    "up-to-space": Term("up to the leading space",
        "A printed token counts as one of ours whether or not either begins with a space. “Exactly” compares the "
        "space, too, if print has not lost it."),
    "build": Term("build", "A fingerprint of everything the lists depend on: equal builds show equal lists."),
}  # fmt: skip

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
# Special tokens of encoders, by the text between their brackets: BERT's, and RoBERTa's where those differ.
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
    """Explain the purpose of an encoder's special token, such as [CLS]; return "" for any other token."""
    name = token[1:-1] if token[:1] + token[-1:] in ("[]", "<>") else ""
    if name.startswith("unused") and name[6:].isdecimal():
        return "Kept free by the makers of the vocabulary: no text has it, and training has hardly moved it."
    return MARKS.get(name, "")
