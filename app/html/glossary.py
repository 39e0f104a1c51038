"""Explain the words of the field in plain language, for the help page and the tooltips. The help page itself,
templates/help.html, has longer explanations with the formulas."""

from typing import NamedTuple


class Term(NamedTuple):
    name: str
    text: str  # one or two sentences that are understood without the help page


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
    "label": Term(
        "label", "What somebody said of a parameter, with who said it and where: from a file that anybody can write."
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
    "direction": Term(
        "singular direction",
        "A head's matrix is a sum of d_head steps, each from one direction to another, σ times as strong; no two of "
        "them overlap. They are the head's own, where subheads are the axes its weights happen to be stored in.",
    ),
    "singular": Term(
        "σ, singular value",
        "How strong a direction of a head is: a vector along its one side comes out along the other, σ times as long.",
    ),
    "singular-share": Term(
        "share of the matrix",
        "σ² over the sum of all of the head's: how much of the matrix (its squared Frobenius norm) the direction is.",
    ),
    "direction-sign": Term(
        "what is convention in a direction",
        "Both sides may be turned round together; the sign here puts the largest score of the written side, or of the "
        "key, at the top. And directions whose singular values are nearly equal may be mixed with one another.",
    ),
    "direction-coherence": Term(
        "coherence of a direction",
        "The mean coherence of its two sides' lists, top with top or bottom with bottom, whichever is larger. A list "
        "whose first tokens are no words, or hardly learned ones, counts as 0.",
    ),
    "reads-better": Term(
        "reads better",
        "The mean coherence of a head's ten best directions beside that of its ten best subheads, v with o or q with "
        "k, top with top or bottom with bottom. Lists of random vectors have .08 on MiniLM and .12 on the demo; less "
        "than .025 between the two says nothing.",
    ),
    "vo_in": Term("vo_in", "The side of a VO direction that reads what is carried from the position attended to."),
    "vo_out": Term("vo_out", "The side of a VO direction that writes into the stream what its in finds."),
    "qk_query": Term("qk_query", "The side of a QK direction that reads the position that attends."),
    "qk_key": Term("qk_key", "The side of a QK direction that reads the position that may be attended to."),
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
    "true-cosine": Term(
        "cosine",
        "Of a vector with a token's centred embedding: the score under the lens cosine, in which the token has length "
        "one, divided by the vector's length, too. 1 at most, whatever the lengths; two random directions of 576 "
        "dimensions have about 0.04.",
    ),
    "preset": Term("preset", "Which pairs compete: all, distinct (not one word in two spellings) or words."),
    "all": Term("preset all", "Every pair of tokens."),
    "distinct": Term("preset distinct", "The two tokens differ even without case, surrounding space and ##."),
    "words": Term(
        "preset words",
        "Distinct, and both are a space (BERT's: no space and no ##) and three or more ASCII letters; a word's "
        "beginning may pass.",
    ),
    "kept": Term(
        "tokens of lists",
        "All tokens, or only whole words: a space (BERT's: no space and no ##), then three or more ASCII letters. "
        "Ranks stay the true ones.",
    ),
    "high-bias": Term(
        "high bias",
        "Most of these tokens are such as any list may hold, whatever it is about: frequent, special, hardly learned, "
        "or hubs.",
    ),
    "beforehand": Term(
        "beforehand",
        "What the model thinks of a token before any text. A long row makes large scores in the lens dot; a row near "
        "the mean of all has hardly been learned. The logit at the mean final state, of some sentences, is what it has "
        "whatever was read; b · W_U, b the final norm's bias, is the part that is always the same. Rank 1 is the "
        "largest.",
    ),
    "vocabulary": Term(
        "vocabulary",
        "A corpus or a word list of one's own, which `lexiscope vocabulary add` puts into the data folder: lists keep "
        "only the tokens that occur in it.",
    ),
    "norm": Term("norm", "The length of the vector: how much it can matter, whatever it points at."),
    "z": Term(
        "z, and the line of chance",
        "How many standard deviations the first token's score lies above the mean score of all tokens. Random vectors "
        "have a large z, too, because there are many tokens: the line of chance is what 99 % of them stay under. In a "
        "blind reading 18 of 24 lists above it were clear, and 1 of 56 below. Where no more than 1 % of a layer are "
        "above, these may be chance, too.",
    ),
    "through-norm": Term(
        "may act through the final norm",
        "Among the 5 % of its layer with the largest norms, and the variance of its cosine with the rows of the "
        "unembedding is below .7 of the layer's median: it hardly prefers a token, and may work mostly by changing "
        "the norm. No token at either end stands out, either.",
    ),
    "in-and-out": Term(
        "in and out of a neuron",
        "Strengthening: the cosine of what a neuron writes with what it reads (of gated neurons, with what up reads) "
        "is above .5, so what is there grows while the neuron is active; weakening: it is below −.5. Conditional: the "
        "gate reads something else. Proportional: only the gate is along what is written, and up, which reads "
        "something else, says how much of it and with which sign. No clear class: no cosine with what it writes is as "
        "large, though it may be more than chance gives.",
    ),
    "coherence": Term(
        "coherence",
        "How alike the first 20 tokens of a list are, hubs left out: the mean cosine of their centred embeddings, "
        "usually 0 to 1; 20 random tokens have about 0 (in the demo .00 ± .01). A head's is the mean of its two "
        "columns; – means that too few tokens are left.",
    ),
    "readability": Term(
        "readability",
        "How well one can name what a head does from its first 20 pairs of words, lens cosine: the mean of how alike "
        "the two words of a pair are, or how much it is like other pairs. It follows ratings by readers; from 0 to 1.",
    ),
    "hub": Term(
        "hub",
        "A token in more than ten times as many lists as by chance, whatever these are about: its place in one says "
        "little. Hubs have a dashed edge, and one switch hides them.",
    ),
    "nearest-hub": Term(
        "hub among nearest tokens",
        "A token that is among the nearest of more than ten times as many tokens as by chance, such as a comma: being "
        "near to it says little, so it is left out.",
    ),
    "first-pair": Term(
        "a head's first words",
        "The first pair of two different words among the head's pairs under the lens cosine and the preset words: what "
        "it is about, as far as one pair can tell.",
    ),
    "alike": Term(
        "alike",
        "How alike the tokens of a list are: the mean cosine between their centred embeddings, 1 at most; random "
        "tokens have about 0 (8 of the demo's: .00 ± .02).",
    ),
    "similarity": Term(
        "similarity",
        "How much the top 100 tokens of a neuron's key overlap with the top, and with the bottom, of its value: 1 all, "
        "0 none (Jaccard). Likewise of a subhead's v and o, and q and k.",
    ),
    "shuffled": Term(
        "shuffled",
        "What chance gives: the same number, with the value of another neuron of the layer (or with another subhead's "
        "vector).",
    ),
    "difference": Term(
        "difference",
        "Of two models, tuned − base: every vector of the one less that of the other, as lists of tokens. What changed "
        "points at the tokens at the top, and away from those at the bottom.",
    ),
    "change": Term(
        "change",
        "How much of a vector a fine-tune changed: |Δ| / |base|, the length of the difference over that of the base's "
        "vector. Of a head, of its whole matrix (Frobenius norms).",
    ),
    "norm-of-difference": Term("|Δ|", "The length of the difference: how far the vector moved."),
    "unchanged": Term(
        "unchanged",
        "The difference is exactly 0: both models have the same numbers there. All tokens score 0, so a list would be "
        "noise, and none is shown.",
    ),
    "classifier": Term(
        "classification head",
        "What turns a text's last state into labels: a vector for each, and the label whose vector the state points at "
        "most is the answer. Only differences between labels count.",
    ),
    "dense": Term(
        "dense",
        "Of encoders: d_model vectors that read the state of the first token; their answers, squashed, are what the "
        "labels' vectors read.",
    ),
    "nearest": Term(
        "nearest tokens",
        "Tokens whose centred embeddings point most nearly the same way; the number is their cosine, 1 at most.",
    ),
    "reads": Term("reads", "The vector looks for this token: it is at the top of a key's or query's list."),
    "avoids": Term("avoids", "The vector looks for the opposite of this token: it is at the bottom of its list."),
    "writes": Term("writes", "The vector promotes this token: it is at the top of a value's or output's list."),
    "positive": Term(
        "turns positive on", "At the top of up's list: by the weights alone it is positive for this token."
    ),
    "negative": Term(
        "turns negative on", "At the bottom of up's list: by the weights alone it is negative for this token."
    ),
    "suppresses": Term(
        "suppresses", "At the bottom of the vector's list: with a positive coefficient it speaks against this token."
    ),
    "shuffled-targets": Term(
        "shuffled targets",
        "The mean rank of the second words of other pairs, or of random words: small where a head promotes them "
        "whatever it reads.",
    ),
    "itself-rank": Term(
        "itself",
        "The mean rank of the first words themselves: 1 where a head copies what it reads, and all that is like it.",
    ),
    "by-chance": Term(
        "by chance",
        "How many heads would have such a mean rank, or a smaller one, if every rank were drawn at random.",
    ),
    "transition-score": Term(
        "score of a transition",
        "How far the words stand out in what the neuron reads and writes: the smallest of the z (standard deviations "
        "above the mean of all tokens) in its vectors, on average over the pairs.",
    ),
    "transition-shuffled": Term(
        "shuffled score",
        "The score with the second words of other pairs, or with random words: as large where any of them will do.",
    ),
    "rank-in-up": Term(
        "rank in up",
        "The first word’s place in a gated neuron’s second input. From the bottom: there the neuron’s coefficient is "
        "negative, and it adds the bottom of its value.",
    ),
    "seeds": Term(
        "seed words",
        "A few words that stand for a concept. The paper's score is the dot product of a vector with their average "
        "embedding; under the lens cosine, the mean of the vector's cosines with the words.",
    ),
    "fit": Term(
        "fit",
        "How well a vector fits seed words: its dot product with the average of the words and of their 20 nearest "
        "tokens, over the spread (standard deviation) of its scores of all tokens. A vector that likes all frequent "
        "tokens has a wide spread.",
    ),
    "cosine-with-words": Term(
        "cosine with the words",
        "Of a vector with the average of seed words: their dot product over their lengths, from -1 to 1.",
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
        "What a position looks for at a head (h W_Q W_Kᵀ), what others find it by (h W_K W_Qᵀ), and what it sends to "
        "those that attend to it (h W_V W_O), as words. McCormick's second post calls pattern what a token leaves "
        "behind for others: that is our 'is found by'.",
    ),
    "neurons": Term("active neurons", "Those that move the stream most in a run: coefficient times norm of the value."),
    "first-only": Term(
        "first token only",
        "In this run its coefficient at the first token is, in size, at least ten times the largest at any other: such "
        "neurons fire there whatever the token is.",
    ),
    "coverage": Term(
        "coverage (R_k)", "The share of a hidden state's first k tokens that the lists of the most active vectors hold."
    ),
    "random-state": Term(
        "random state",
        "Of coverage, what chance gives: the vectors that were active at one position, and the state at another one, "
        "drawn from all positions of the texts.",
    ),
    "keep-k": Term(
        "keep-k",
        "A vector as scores of all tokens, of which all but the k largest in size are set to 0: what is left of it if "
        "one reads only the first k tokens.",
    ),
    "pseudo-inverse": Term(
        "pseudo-inverse",
        "E⁺ undoes the embedding exactly, E E⁺ being the identity. The paper, and all lists here, use the transpose "
        "instead: scores are then plain products with the tokens' embeddings.",
    ),
    "attribution": Term(
        "attribution",
        "What each head and neuron added to a token's logit directly, with the scales of the norms behind it fixed: "
        "the terms sum to the logit.",
    ),
    "logit": Term(
        "logit",
        "A token's score before probabilities are made of it: one more makes its odds e times as large.",
    ),
    "reading": Term(
        "other readings",
        "The same vector or head with the norms folded in, compared with tokens after the first block or its MLP, or "
        "with the pseudo-inverse in place of the transpose.",
    ),
    "word-source": Term(
        "words from",
        "What stands for a word: its embedding; what the first block makes of a text of this word's token alone; "
        "through heads also its embedding as the norm in front of each layer's attention leaves it, gain and bias "
        "included; of seeds also its row of the pseudo-inverse.",
    ),
    "overlap": Term(
        "overlap",
        "What two lists of one length share, divided by what either has: 1 all, 0 none (Jaccard). Two lists of random "
        "tokens share next to nothing: less than .001 for 25 of the demo's.",
    ),
    "worker": Term(
        "worker", "The process with the model in memory that computes live pages; stored pages do without it."
    ),
    "pearson": Term(
        "r, correlation of two vectors",
        "Pearson's r of the scores that two vectors give to all tokens that both models know: 1 alike, 0 nothing in "
        "common, −1 opposite. Vectors that read are scored with W_E, vectors that write with the unembedding.",
    ),
    "vs-similarity": Term(
        "similarity of two layers",
        "The mean |r| over all pairs of a vector of one layer and a vector of the other. Most pairs have nothing to do "
        "with each other, so it is small, and what counts is where it is largest.",
    ),
    "vs-chance": Term(
        "similarity of random vectors",
        "The mean |r| of vectors drawn at random: the floor. A cell at the floor says nothing; colours begin above it.",
    ),
    "assignment": Term(
        "assignment of layers",
        "Every layer of the model with fewer layers gets a layer of the other, no two the same, so that the sum of the "
        "similarities is as large as can be (the Hungarian method).",
    ),
    "vs-best": Term(
        "best matches by layer",
        "Of a layer's vectors, how many percent have their best match, the vector of the other model with the largest "
        "|r|, in each of its layers.",
    ),
    "kernel": Term(
        "kernel",
        "The matrix that turns states of one model into states of another: that state of B whose scores of all tokens "
        "that both know are nearest to the scores that A's state gives them.",
    ),
    "stitching": Term(
        "stitching",
        "The first layers of one model and the last of another, without training: the state between them goes through "
        "the kernel.",
    ),
    "chance-of-stitching": Term(
        "chance, of stitching",
        "How often a model would be right that always says the most frequent next token, or label, of the texts.",
    ),
    "vs-feature": Term(
        "feature space",
        "The same with the vectors' own d_model coordinates in place of their scores: what one sees without the "
        "vocabulary. It means something only where two models grew from one, as a fine-tune and its base.",
    ),
    "in-order": Term(
        "in order",
        "The most layers of an assignment that follow each other in both models; of 6 layers assigned at random about "
        "3 do, of 12 about 5.",
    ),
    "in-place": Term(
        "same depth",
        "Layers assigned to the layer at the same relative depth: of equally deep models the same layer, else the "
        "nearest. By chance it is one.",
    ),
    "same-number": Term(
        "same number",
        "Vectors whose best match in the other model has the same number in its layer. By chance that is one of very "
        "many; where it is most of them, both models grew from the same weights.",
    ),
    "negative-r": Term(
        "negative r",
        "The two vectors are opposite: what is at the top of one is at the bottom of the other. For q and k, v and o, "
        "up and value, or a direction's two sides, it is as good as a positive r only if the partner's is negative, "
        "too; a key is then an opposite.",
    ),
    "subhead-matches": Term(
        "matches of subheads",
        "Which channels a head has is arbitrary unless positions are rotary: another basis gives the same head. So "
        "single q, k, v and o of two models match only where the models are kin.",
    ),
    "direction-matches": Term(
        "matches of directions",
        "Directions are the head's own and not a matter of basis; but those with nearly equal singular values are "
        "mixed in any way, and only both sides together have a sign.",
    ),
    "up-to-space": Term(
        "up to the leading space",
        "A printed token counts as one of ours whether either begins with a space or not; no token of ours stands for "
        "two printed ones. “Exactly” counts the space, too, of tokens whose space print has not lost.",
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
