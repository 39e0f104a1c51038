"""The tokenizer that a tokenizer.json describes, for texts of any length."""

from tokenizers import Tokenizer


def parse_tokenizer(content: bytes) -> Tokenizer:
    """Files of sentence encoders also cut every text, or pad it to one length: that is for batches, and left out.

    The library raises nothing more special than Exception for what is no tokenizer.
    """
    tokenizer = Tokenizer.from_buffer(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
