"""Make small real tokenizers, one for each kind that a family of models has, trained on a few lines of text.

Each is built as the family's own tokenizer.json is: the same normaliser, pre-tokenizer, special tokens (at the same
places) and post-processor. They have about 512 tokens, so that random models stay small."""

import json
import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = """The dog and the lion saw the horse. The Dog barked; the Lion roared; the Horse ran away from the dog.
A horse, a dog, a lion: animals of the farm and of the plain. Dogs and horses and lions like the grass and the river.
THE DOG SAW THE LION. Ten years, a decade, decades of years; a week, weeks, a month, months and a year.
She reads the words and he writes the words: reading, writing, reader, writer, word, words, sentence, sentences.
Paris is in France, Berlin is in Germany, Rome is in Italy; France, Germany and Italy are countries of Europe.
In 1969 and 2024 there were 12 apostles, 7 seas and 50 states. It's what we'll do, isn't it? They're here; I've seen.
"""
HOSTILE = ("<script>", '"></', "Ġ<b>", "&amp;", "Ġ{{x}}", "Ã", "âĢ", "Ċ", "ĠĠĠĠ")  # as byte-level BPE writes them
ENDINGS = ("ing", "ed", "er", "ers", "es", "ly", "ness", "man", "land", "ion", "able")  # ends of words, for WordPiece
SIZE = 512
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST
_LLAMA3 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST


@dataclass(frozen=True)
class SmallTokenizer:
    """A tokenizer.json, and the fields of the family's tokenizer_config.json."""

    json: str
    config: dict[str, Any]  # tokenizer_class, bos_token, eos_token, ...

    @property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_str(self.json)

    @property
    def size(self) -> int:
        """Return d_vocab: how many rows an embedding needs."""
        return int(self.tokenizer.get_vocab_size(with_added_tokens=True))

    @property
    def special_ids(self) -> dict[str, int]:
        """Return the fields of the model's config.json about special tokens: bos_token_id, eos_token_id, pad_token_id,
        ..."""
        names = ("bos_token", "eos_token", "pad_token", "sep_token", "mask_token")
        vocab = self.tokenizer.get_vocab(with_added_tokens=True)
        return {f"{name}_id": vocab[self.config[name]] for name in names if name in self.config}

    def save(self, folder: Path) -> None:
        """Save the files as in a checkpoint's folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(self.json)
        (folder / "tokenizer_config.json").write_text(json.dumps(self.config))


@cache
def gpt2(size: int = SIZE) -> SmallTokenizer:
    """Make a byte-level BPE with one special token, the last, and hostile tokens."""
    vocab, merges = _train_bytes(_byte_level(), size - len(HOSTILE) - 1)
    for token in HOSTILE:
        vocab.setdefault(token, len(vocab))
    tokenizer = _bytes_tokenizer(vocab, merges, _byte_level())
    _add(tokenizer, "<|endoftext|>")
    return _with_config(tokenizer, "GPT2Tokenizer", bos="<|endoftext|>", eos="<|endoftext|>", unk="<|endoftext|>")


@cache
def gpt_neox() -> SmallTokenizer:
    """Make Pythia's byte-level BPE: NFC, special tokens first, runs of spaces as added tokens that are not special."""
    spaces = [" " * n for n in range(8, 1, -1)]
    vocab, merges = _train_bytes(_byte_level(), SIZE - len(spaces), ["<|endoftext|>", "<|padding|>"])
    tokenizer = _bytes_tokenizer(vocab, merges, _byte_level(), normalizers.NFC())
    _add(tokenizer, "<|endoftext|>", "<|padding|>")
    tokenizer.add_tokens([AddedToken(space, normalized=True) for space in spaces])
    return _with_config(tokenizer, "GPTNeoXTokenizer", bos="<|endoftext|>", eos="<|endoftext|>", unk="<|endoftext|>")


@cache
def qwen() -> SmallTokenizer:
    """Make the byte-level BPE of Qwen2 and Qwen3: NFC, digits one by one, special tokens last, nothing before a
    text."""
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = _bytes_tokenizer(*_train_bytes(_split(_QWEN), SIZE - len(special)), _split(_QWEN), normalizers.NFC())
    _add(tokenizer, *special)
    return _with_config(tokenizer, "Qwen2Tokenizer", eos="<|im_end|>", pad="<|endoftext|>")


@cache
def llama3() -> SmallTokenizer:
    """Make a byte-level BPE that looks words up before it merges; special tokens last, <|begin_of_text|> before a
    text."""
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|eot_id|>"]
    vocab, merges = _train_bytes(_split(_LLAMA3), SIZE - len(special))
    tokenizer = _bytes_tokenizer(vocab, merges, _split(_LLAMA3), ignore_merges=True)
    _add(tokenizer, *special)
    template = _template(tokenizer, "<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return _with_config(tokenizer, "PreTrainedTokenizerFast", bos="<|begin_of_text|>", eos="<|end_of_text|>")


@cache
def llama() -> SmallTokenizer:
    """Make SentencePiece's BPE of Llama 1 and 2 and Mistral: ▁ for spaces, one put before every text; bytes; <s>."""
    tokenizer = _metaspace(["<unk>", "<s>", "</s>"], SIZE, prepend=True)
    _add(tokenizer, "<unk>", "<s>", "</s>")
    tokenizer.post_processor = _template(tokenizer, "<s>")
    return _with_config(tokenizer, "LlamaTokenizer", bos="<s>", eos="</s>", unk="<unk>", legacy=True)


@cache
def phi3() -> SmallTokenizer:
    """Make Llama's tokenizer with chat tokens at the end and nothing before a text."""
    tokenizer = _metaspace(["<unk>", "<s>", "</s>"], SIZE - 3, prepend=True)
    _add(tokenizer, "<unk>", "<s>", "</s>", "<|endoftext|>", "<|assistant|>", "<|end|>")
    flags = {"add_bos_token": False, "legacy": False}
    return _with_config(tokenizer, "LlamaTokenizer", bos="<s>", eos="<|endoftext|>", unk="<unk>", **flags)


@cache
def gemma() -> SmallTokenizer:
    """Make SentencePiece's BPE of Gemma: ▁ for spaces, none put before a text; bytes; <bos>; unused and HTML tokens."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    others = ["[multimodal]", "<unused0>", "<unused1>", "<start_of_turn>", "<end_of_turn>"]
    tokenizer = _metaspace([*special, *others], SIZE, prepend=False)
    _add(tokenizer, *special)
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in others])
    tokenizer.post_processor = _template(tokenizer, "<bos>")
    return _with_config(tokenizer, "GemmaTokenizer", bos="<bos>", eos="<eos>", unk="<unk>", pad="<pad>", mask="<mask>")


@cache
def roberta() -> SmallTokenizer:
    """Make a byte-level BPE between <s> and </s>; <mask> is last, and takes the space before it."""
    tokenizer = _bytes_tokenizer(*_train_bytes(_byte_level(), SIZE - 1, _FAIRSEQ), _byte_level())
    _add(tokenizer, *_FAIRSEQ)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>"}
    return _with_config(tokenizer, "RobertaTokenizer", **names, mask="<mask>")


@cache
def opt() -> SmallTokenizer:
    """Make GPT-2's tokenizer with RoBERTa's special tokens first, and </s> before a text."""
    tokenizer = _bytes_tokenizer(*_train_bytes(_byte_level(), SIZE, _FAIRSEQ), _byte_level())
    _add(tokenizer, *_FAIRSEQ)
    tokenizer.post_processor = _template(tokenizer, "</s>")
    names = {"bos": "</s>", "eos": "</s>", "unk": "</s>", "pad": "<pad>"}
    return _with_config(tokenizer, "GPT2Tokenizer", **names, add_bos_token=True)


@cache
def bert() -> SmallTokenizer:
    """Make a WordPiece tokenizer in lower case between [CLS] and [SEP]; [unused] tokens stand between the special
    ones."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    unused = [f"[unused{n}]" for n in range(4)]
    words = sorted({*re.findall("[a-z]+|[0-9]+", TEXT.lower())})
    characters = string.digits + string.ascii_lowercase + string.punctuation
    # It is not trained, because the library's trainer of WordPiece gives other pieces in every process.
    pieces = [*characters, *words, *("##" + piece for piece in [*characters, *ENDINGS])]
    order = dict.fromkeys([special[0], *unused, *special[1:], *pieces])
    tokenizer = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(order)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    _add(tokenizer, *special)
    tokenizer.post_processor = _template(tokenizer, "[CLS]", "[SEP]")
    names = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
    return _with_config(tokenizer, "BertTokenizer", **names, do_lower_case=True)


@cache
def distilbert() -> SmallTokenizer:
    """Make BERT's tokenizer for DistilBERT."""
    return SmallTokenizer(bert().json, bert().config | {"tokenizer_class": "DistilBertTokenizer"})


@cache
def xlm_roberta() -> SmallTokenizer:
    """Make SentencePiece's Unigram between <s> and </s>: ▁ for spaces, one put before every text; <mask> last."""
    counts = Counter(re.findall("[A-Za-z]+|[0-9]+", TEXT))
    pieces = [("▁" + word, math.log(count)) for word, count in sorted(counts.items())]
    characters = ["▁", *string.digits, *string.ascii_letters, *string.punctuation]
    pieces = [(piece, 0.0) for piece in _FAIRSEQ] + pieces + [(character, -10.0) for character in characters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=_FAIRSEQ.index("<unk>"), byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    spaces = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces])
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    _add(tokenizer, *_FAIRSEQ)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    tokenizer.post_processor = _template(tokenizer, "<s>", "</s>")
    names = {"bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>"}
    return _with_config(tokenizer, "XLMRobertaTokenizer", **names, mask="<mask>")


TOKENIZERS: dict[str, Callable[[], SmallTokenizer]] = {
    "gpt2": gpt2,
    "gpt_neo": gpt2,
    "gpt_neox": gpt_neox,
    "llama": llama,
    "llama3": llama3,
    "mistral": llama,
    "phi3": phi3,
    "qwen": qwen,
    "gemma": gemma,
    "opt": opt,
    "bert": bert,
    "roberta": roberta,
    "xlm-roberta": xlm_roberta,
    "distilbert": distilbert,
}
_FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]


def tokenizer_json(vocabulary: int = SIZE) -> str:
    """Write a byte-level BPE tokenizer.json of GPT-2's kind: words with leading spaces, case variants, hostile
    tokens."""
    return gpt2(vocabulary).json


def _byte_level() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _split(pattern: str) -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _train_bytes(
    cut: pre_tokenizers.PreTokenizer, size: int, first: Iterable[str] = ()
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Train a byte-level BPE and return vocabulary and merges; the tokens of `first` have the first ids, then come the
    bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return _train(cut, trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(first), initial_alphabet=alphabet, show_progress=False
    ))  # fmt: skip


def _train(
    cut: pre_tokenizers.PreTokenizer, trainer: trainers.BpeTrainer
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = cut
    trained.train_from_iterator(TEXT.splitlines(keepends=True), trainer)
    model = json.loads(trained.to_str())["model"]
    return model["vocab"], [(left, right) for left, right in model["merges"]]


def _bytes_tokenizer(
    vocab: dict[str, int],
    merges: list[tuple[str, str]],
    cut: pre_tokenizers.PreTokenizer,
    normalizer: normalizers.Normalizer | None = None,
    ignore_merges: bool = False,
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _metaspace(first: list[str], size: int, prepend: bool) -> Tokenizer:
    """Make a BPE of the tokens of `first`, a token for each byte, merges, and single characters, which stand last."""
    first = [*first, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=first, show_progress=False)
    vocab, merges = _train(pre_tokenizers.Metaspace(prepend_scheme="always" if prepend else "never"), trainer)
    order = sorted(vocab, key=lambda piece: (piece not in first, len(piece) == 1, vocab[piece]))
    vocab = {piece: number for number, piece in enumerate(order)}
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    replace = normalizers.Replace(" ", "▁")
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if prepend:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace])
        tokenizer.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)])
    else:
        tokenizer.normalizer = replace
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
        tokenizer.decoder = decoders.Sequence(parts)
    return tokenizer


def _add(tokenizer: Tokenizer, *special: str) -> None:
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])


def _template(tokenizer: Tokenizer, before: str, after: str = "") -> processors.PostProcessor:
    special = [(token, tokenizer.token_to_id(token)) for token in (before, after) if token]
    return processors.TemplateProcessing(single=f"{before} $A {after}".strip(), special_tokens=special)


def _with_config(tokenizer: Tokenizer, tokenizer_class: str, **settings: Any) -> SmallTokenizer:
    """Add the family's configuration; a setting that is a token is named `bos` for bos_token and so on."""
    names = {name: f"{name}_token" for name in ("bos", "eos", "unk", "pad", "sep", "cls", "mask")}
    config = {names.get(name, name): value for name, value in settings.items()}
    return SmallTokenizer(str(tokenizer.to_str(pretty=False)), {"tokenizer_class": tokenizer_class} | config)
