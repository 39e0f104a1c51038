"""Write the card of a published index, the README.md of its repository: what the index holds, of which model, and how
to open it. Text that people write around our part is left as it is."""

import re

from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.plain_text import file_size, plain

CARD = "README.md"
BEGIN, END = "<!-- lexiscope: what stands here is written by `lexiscope push` -->", "<!-- lexiscope: end -->"
_OURS = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_HEAD = """---
pretty_name: {name} as words
tags:
- lexiscope
- interpretability
viewer: false
---

"""


def card(manifest: Manifest, repository: str, before: str | None) -> str:
    """Return the text of the whole card; `before` is its present text. A card without a place for our part stays as it
    is."""
    ours = f"{BEGIN}\n{_text(manifest, repository)}{END}"
    if before is None or not before.strip():
        return f"{_HEAD.format(name=manifest.model)}{ours}\n"
    return _OURS.sub(lambda _: ours, before, count=1)


def _text(manifest: Manifest, repository: str) -> str:
    stored, shape = manifest.stored, manifest.shape
    n_bytes = sum(entry.bytes for entry in manifest.entries().values())
    layers = tuple(manifest.shards)
    rows = {
        "model": f"{_code(manifest.name or manifest.model)}, {shape.name or shape.architecture}",
        "weights": f"{_code(manifest.origin)}; SHA-256 {_code(manifest.weights_sha256)}",
        "revision": _code(manifest.revision) if manifest.revision else "",
        "base": f"{_code(manifest.minus.model)}; SHA-256 {_code(manifest.minus.weights_sha256)}"
        if manifest.minus
        else "",
        "build": f"{_code(manifest.build)}, format {manifest.format}",
        "layers": f"{len(layers)} of {shape.n_layers} ({ranges(layers)})",
        "size": file_size(n_bytes),
        "vectors": ", ".join(map(_code, stored.kinds)),
        "lenses": ", ".join(map(_code, stored.lenses)),
        "lists": f"{stored.k} tokens at either end, {stored.pairs or 'no'} pairs of each head's matrices",
        "vocabulary": f"{shape.d_vocab} tokens",
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value)
    return f"""# {manifest.model}: its weights as words

The index of a model for Lexiscope: for every neuron, attention head and subhead the tokens of the vocabulary that its
weights are nearest to, after *Analyzing Transformers in Embedding Space* (Dar, Geva, Gupta, Berant, 2022). No text was
run for it, and it holds no weights.

| | |
|---|---|
{table}

To open it:

```
pip install 'lexiscope[hub]'
lexiscope pull {repository}
lexiscope serve
```

`lexiscope verify {manifest.model}` compares the files with their checksums and, where torch is installed, a random
sample of the lists with the weights. `manifest.json` says what each file is; they are safetensors files, which any tool
opens.

**Licence.** These lists were computed from the weights named above, and `tokenizer.json` is the model's own: the terms
of that model apply to what was taken from it. Whoever publishes this index has to see that they may.
"""


def _code(text: str) -> str:
    """Write a text as code in a table, so that a name from a file does not become markup."""
    return "`" + plain(text).replace("`", "'").replace("|", "\\|") + "`"
