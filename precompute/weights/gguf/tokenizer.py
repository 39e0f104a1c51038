"""Write the tokenizer inside a GGUF file as a tokenizer.json that splits text in the same way. Supported are byte-level
BPE (GPT-2, SmolLM, Llama 3, Qwen) and SentencePiece's BPE (Llama 2)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from lexiscope.precompute.errors import BadWeights

_CONTROL, _USER_DEFINED, _UNKNOWN = 3, 4, 2  # values of tokenizer.ggml.token_type
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def _digits_apart() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


def _llama3() -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(_LLAMA3), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _qwen() -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(_LLAMA3.replace("{1,3}", "")), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


# How text is cut before the merges, by tokenizer.ggml.pre.
_CUTS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": _gpt2,
    "default": _gpt2,
    "smollm": _digits_apart,
    "llama-bpe": _llama3,
    "llama3": _llama3,
    "qwen2": _qwen,
}


def write_tokenizer(fields: dict[str, Any], d_vocab: int, folder: Path) -> None:
    """Write tokenizer.json, and a tokenizer_config.json that names its special tokens."""
    info = {name.removeprefix("tokenizer.ggml."): value for name, value in fields.items() if "tokenizer.ggml." in name}
    tokens, kinds = info.get("tokens"), info.get("token_type")
    if not isinstance(tokens, list) or not 1 <= len(tokens) <= d_vocab or not isinstance(tokens[0], str):
        count = len(tokens) if isinstance(tokens, list) else "no"
        raise BadWeights(f"The GGUF file has {count} tokens for {d_vocab} embeddings: its tokenizer is broken.")
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        kinds = [1] * len(tokens)
    try:
        tokenizer = _sentencepiece(info, tokens, kinds) if info.get("model") == "llama" else _byte_level(info, tokens)
        for token, kind in zip(tokens, kinds, strict=True):
            if kind in (_CONTROL, _USER_DEFINED):
                tokenizer.add_tokens([AddedToken(token, special=kind == _CONTROL, normalized=False)])
        _begin_with_bos(tokenizer, info, tokens)
    except BadWeights:
        raise
    except Exception as error:  # the library raises nothing more special
        raise BadWeights(f"The GGUF file's tokens and merges do not make a tokenizer: {error}") from error
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {f"{name}_token": _token(info, tokens, name) for name in ("bos", "eos", "unknown", "padding")}
    names = {"unknown_token": "unk_token", "padding_token": "pad_token"}
    config = {names.get(key, key): value for key, value in special.items() if value is not None}
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def _byte_level(info: dict[str, Any], tokens: list[str]) -> Tokenizer:
    if info.get("model") != "gpt2":
        raise BadWeights(f"The GGUF file's tokenizer is of the kind {info.get('model')}; gpt2 and llama can be read.")
    cut = info.get("pre", "default")
    if cut not in _CUTS:
        raise BadWeights(
            f"The GGUF file cuts text by the rules of {cut!r}, which are not known here; known: {', '.join(_CUTS)}. "
            "Use the same model in the Hub's format."
        )
    merges = [(left, right) for left, right in (merge.split(" ") for merge in info.get("merges", []))]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=_CUTS[cut] is _llama3))
    if _CUTS[cut] is _qwen:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _CUTS[cut]()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(info: dict[str, Any], tokens: list[str], kinds: list[int]) -> Tokenizer:
    scores = info.get("scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise BadWeights("The GGUF file's SentencePiece tokenizer lacks the scores of its tokens.")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    unknown = next((token for token, kind in zip(tokens, kinds, strict=True) if kind == _UNKNOWN), None)
    tokenizer = Tokenizer(
        models.BPE(
            vocab=vocabulary, merges=_merges(vocabulary, scores), unk_token=unknown, fuse_unk=True, byte_fallback=True
        )
    )
    prefix = [normalizers.Prepend("▁")] if info.get("add_space_prefix", True) else []
    tokenizer.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", "▁")])
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def _merges(vocabulary: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """List merges by score: SentencePiece joins the pair whose result has the highest score, while BPE joins the pair
    that is listed first."""
    merges = [
        (-scores[number], number, at, (token[:at], token[at:]))
        for token, number in vocabulary.items()
        for at in range(1, len(token))
        if token[:at] in vocabulary and token[at:] in vocabulary
    ]
    return [pair for *_, pair in sorted(merges)]


def _begin_with_bos(tokenizer: Tokenizer, info: dict[str, Any], tokens: list[str]) -> None:
    bos = _token(info, tokens, "bos")
    if bos is not None and info.get("add_bos_token", info.get("model") == "llama"):
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos}:0 $A:0", pair=f"{bos}:0 $A:0 {bos}:1 $B:1", special_tokens=[(bos, tokens.index(bos))]
        )


def _token(info: dict[str, Any], tokens: list[str], name: str) -> str | None:
    number = info.get(f"{name}_token_id")
    return tokens[number] if isinstance(number, int) and 0 <= number < len(tokens) else None
