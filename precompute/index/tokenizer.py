"""Load the tokenizer that a tokenizer.json describes, for texts of any length."""

from tokenizers import Tokenizer


def parse_tokenizer(content: bytes) -> Tokenizer:
    """Parse a tokenizer, and turn off truncation and padding, which files of sentence encoders have for batches.

    The library raises a plain Exception if the content is no tokenizer."""
    tokenizer = Tokenizer.from_buffer(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
