"""Find the tokens that stand for a word that somebody types as a seed. This needs the tokenizer alone, and no torch."""

from dataclasses import dataclass

from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.tokens import CONTINUES
from lexiscope.precompute.live.wire.grammar import Spelling

LEADING_SPACES = ("▁", "Ġ")  # how vocabularies write a leading space
UNKNOWN = {"[UNK]", "<unk>"}  # what stands for text that a vocabulary has no pieces for


@dataclass(frozen=True)
class Seed:
    word: str
    tokens: tuple[int, ...]  # the pieces that stand for the word
    weight: float = 1.0


def find_seed(tokenizer: Tokenizer, word: str, weight: float = 1.0, spelling: Spelling = "usual") -> Seed:
    """Return the tokens that stand for a word. Usually this is one token with a leading space; else one without; else
    the pieces of the word with a leading space. The spellings `spaced` and `bare` give the tokens of the word with or
    without a space, however many they are.

    Some tokenizers put a space before every text themselves: then a word needs no second one. A WordPiece tokenizer
    ignores spaces; its pieces (##ing) stand for themselves, although no text is split into one alone.
    """
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        raise NotFound(f"seed {word!a} is no text (it is not UTF-8): give words such as horse, dog, lion") from None
    if isinstance(tokenizer.model, WordPiece) and word.strip().startswith(CONTINUES):
        piece = tokenizer.token_to_id(word.strip())
        if piece is not None:
            return Seed(word, (piece,), weight)
    texts = f" {word.strip()}", word.strip()
    spaced, bare = (tuple(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts)
    has_space = bool(bare) and (tokenizer.id_to_token(bare[0]) or "").startswith(LEADING_SPACES)
    usual = bare if has_space or (len(bare) == 1 and len(spaced) != 1) else spaced
    tokens = {"usual": usual, "spaced": spaced, "bare": bare}[spelling]
    if not word.strip() or not tokens:
        raise NotFound(f"seed {word!r} has no tokens: give words such as horse, dog, lion")
    unknown = UNKNOWN.intersection(tokenizer.id_to_token(token) or "" for token in tokens) - {word.strip()}
    if unknown:
        raise NotFound(
            f"seed {word!r} is unknown to this vocabulary ({unknown.pop()}): give words such as horse, dog, lion"
        )
    return Seed(word, tokens, weight)
