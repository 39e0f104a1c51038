"""Long texts in addresses: deflated, then base64 that an address can hold as it is.
When a text is long is for addresses.py."""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

from lexiscope.precompute.errors import BadRequest

LONGEST = 1 << 20  # bytes of text; a small address can hold very many


def pack(text: str) -> str:
    deflater = zlib.compressobj(9, wbits=-15)
    packed = deflater.compress(text.encode()) + deflater.flush()
    return urlsafe_b64encode(packed).decode().rstrip("=")


def unpack(packed: str) -> str:
    inflater = zlib.decompressobj(wbits=-15)
    try:
        text = inflater.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), LONGEST)
        if not inflater.eof and len(text) == LONGEST:
            raise BadRequest(f"z is a long text, packed: this one has more than {LONGEST} bytes")
        if not inflater.eof or b"\0" in text:
            raise ValueError
        return text.decode()
    except (ValueError, zlib.error):
        raise BadRequest("z is a long text, packed: this one is damaged. Copy the whole address") from None
