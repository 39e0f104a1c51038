"""The description of every family against a run of `transformers` on a small random model of it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import linear

from lexiscope.precompute.errors import BadWeights, NotFound, UnsupportedArchitecture
from lexiscope.precompute.weights.architectures import Model, describe, model_class, names, supported
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.families import ARCHETYPES, FAMILIES, family_parameters
from tests.support.models import tiny_gpt2, tiny_llama
from tests.support.nets import LAYOUTS, Net, Run

TEXT = "The dog and the lion saw the horse in Paris"
WINDOW = 4  # of the local layers in FAMILIES


@dataclass
class Case:
    """A model as it is described, the same as `transformers` has it, and one run of that."""

    folder: Path
    model: Model
    net: Net
    tokens: tuple[int, ...]
    run: Run

    @property
    def layers(self) -> range:
        return range(self.model.shape.n_layers)

    def bias(self, layer: int, kind: str) -> Tensor:
        bias = self.model.in_memory(self.net.net).bias(layer, kind)
        return torch.zeros(1) if bias is None else bias


@pytest.fixture(params=family_parameters())
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def cases() -> dict[str, Case]:
    return {}


@pytest.fixture
def case(
    family: str, cases: dict[str, Case], family_folder: Callable[[str], Path], family_net: Callable[[str], Net]
) -> Case:
    if family not in cases:
        folder, net = family_folder(family), family_net(family)
        tokens = tuple(Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids)
        cases[family] = Case(folder, describe(Checkpoint.open(folder)), net, tokens, net.run(tokens))
    return cases[family]


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_every_model_type_is_tested() -> None:
    assert {*LAYOUTS} == {*supported()} == {family.model_type for family in FAMILIES.values()}


def test_shape_is_that_of_the_config(case: Case) -> None:
    s, c = case.model.shape, case.net.net.config
    assert (s.n_layers, s.n_heads, s.d_model) == (c.num_hidden_layers, c.num_attention_heads, c.hidden_size)
    of_falcon = getattr(case.net.module(0, "attention"), "num_kv_heads", c.num_attention_heads)
    assert s.n_kv_heads == getattr(c, "num_key_value_heads", of_falcon)
    assert (s.architecture, s.d_vocab, s.tied) == (c.model_type, c.vocab_size, c.tie_word_embeddings)
    rotation = case.run.rotations[0]
    assert (s.positions == "rotary") == (rotation is not None)
    assert rotation is None or (s.d_rotary or s.d_head) == rotation[0].shape[-1]
    for kind in s.kinds:
        vectors = case.model.vectors(0, kind)
        assert (vectors.shape, vectors.dtype) == ((s.count(kind), s.d_model), torch.float32)
        assert vectors.is_contiguous()


def test_qk_gives_the_attention(case: Case) -> None:
    """Rotary positions turn the rows of w_q and w_k, which are in the right order then."""
    every = torch.arange(len(case.tokens))
    for layer in case.layers:
        x, expected = case.run.reads[layer], case.run.attentions[layer]
        scores = case.net.scores(case.model, layer, x, every, x, every, case.run)
        close(scores.masked_fill(expected == 0, -torch.inf).softmax(dim=-1), expected)


def test_which_positions_are_seen(case: Case) -> None:
    at = torch.arange(len(case.tokens))
    back = at[:, None] - at  # how far a position looks back
    seen = torch.stack([weights.gt(0).all(dim=0) for weights in case.run.attentions])
    assert seen.equal(torch.stack([weights.gt(0).any(dim=0) for weights in case.run.attentions]))
    if not case.model.shape.causal:
        assert seen.all()
        return
    local = torch.tensor([not seen[layer, -1, 0] for layer in case.layers])
    whole, near = back >= 0, (back >= 0) & (back < WINDOW)
    assert seen.equal(torch.where(local[:, None, None], near, whole))
    has_windows = case.model.shape.architecture in ("mistral", "gemma2", "gemma3_text", "phi3", "gpt_neo")
    assert bool(local.any()) == has_windows


def test_vo_gives_the_output_of_each_head(case: Case) -> None:
    """What the net's own last product makes of one head's mixed values and zeros for the others."""
    s, T = case.model.shape, len(case.tokens)
    for layer in case.layers:
        W_V, W_O = case.model.factors(layer, "vo")
        bias = case.bias(layer, "w_v").expand(s.count("w_v")).view(-1, 1, s.d_head)
        values = case.run.reads[layer] @ W_V + bias.repeat_interleave(s.n_heads // s.n_kv_heads, dim=0)
        read = case.run.attentions[layer] @ values  # (n_heads, T, d_head)
        close(read.transpose(0, 1).flatten(1), case.run.mixed[layer])
        alone = torch.zeros(s.n_heads, T, s.n_heads, s.d_head)
        for head in range(s.n_heads):
            alone[head, :, head] = read[head]
            first = s.row("w_v", head, 0)
            assert case.model.vectors(layer, "w_v")[first : first + s.d_head].T.equal(W_V[head])
        close(read @ W_O + case.bias(layer, "w_o"), case.net.module(layer, "w_o")(alone.flatten(2)))


def test_ff_coefficients_and_output(case: Case) -> None:
    activation = case.model.in_memory(case.net.net).activation()
    for layer in case.layers:
        x = case.net.norm("ff", layer)(_before_ff(case, layer))

        def read(kind: str, x: Tensor = x, layer: int = layer) -> Tensor:
            return linear(x, case.model.vectors(layer, kind)) + case.bias(layer, kind)

        close(read("ff_key"), case.run.keys[layer])
        coefficients = activation(read("ff_key"))
        if case.model.shape.gated:
            coefficients = coefficients * read("ff_up")
        close(coefficients, case.run.coefficients[layer])
        output = coefficients @ case.model.vectors(layer, "ff_value") + case.bias(layer, "ff_value")
        torch.testing.assert_close(output, case.run.written[layer], rtol=1e-4, atol=1e-4)


def _before_ff(case: Case, layer: int) -> Tensor:
    """What the norm before FF reads: the stream after attention, but where both read the same stream."""
    streams = case.run.streams
    if case.net.parallel:
        return streams[(layer - 1, "ff") if layer else (0, "embedding")]
    if not case.model.shape.causal:  # the stream after attention is behind that norm
        before = streams[(layer - 1, "ff") if layer else (0, "embedding")]
        return before + case.run.attended[layer]
    return streams[layer, "attention"]


def test_embedding_and_unembedding(case: Case) -> None:
    """Tokens go in by rows of W_E; what comes out of the last layer meets W_U by the model's own last steps."""
    model, net = case.model, case.net.net
    ids = list(case.tokens)
    assert model.W_E[ids].equal(net.get_input_embeddings().weight[ids])
    assert (model.W_U is model.W_E) == model.shape.tied
    last = case.run.streams[case.layers[-1], "ff"]
    if case.run.logits is None:
        assert not model.predicts
        return
    close(model.in_memory(net).logits(last), case.run.logits)
    assert model.W_U.equal(net.get_output_embeddings().weight)
    if model.shape.causal:
        logits, cap = case.net.norm("final")(last) @ model.W_U.T, getattr(net.config, "final_logit_softcapping", None)
        close(logits if cap is None else cap * torch.tanh(logits / cap), case.run.logits)


def same_vectors(found: Model, expected: Model, dtype: torch.dtype = torch.float32) -> None:
    assert replace(found.shape, predicts=expected.shape.predicts) == expected.shape
    for name in ("W_E", "W_U"):
        assert getattr(found, name).equal(getattr(expected, name).to(dtype).float())
    for kind in expected.shape.weight_kinds:
        assert found.vectors(1, kind).equal(expected.vectors(1, kind).to(dtype).float())


@pytest.mark.parametrize("family", ARCHETYPES)
def test_several_files_and_half_the_bytes(case: Case, tmp_path: Path) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        folder = tmp_path / str(dtype)
        tensors = {name: tensor.to(dtype) for name, tensor in load_file(case.folder / "model.safetensors").items()}
        _write_parts(folder, tensors)
        (folder / "config.json").write_bytes((case.folder / "config.json").read_bytes())
        same_vectors(describe(Checkpoint.open(folder)), case.model, dtype)


def _write_parts(folder: Path, tensors: dict[str, Tensor]) -> None:
    """As the Hub has large models: tensors in three files, and an index of them."""
    folder.mkdir()
    places = {name: f"model-0000{number % 3 + 1}-of-00003.safetensors" for number, name in enumerate(tensors)}
    for place in set(places.values()):
        save_file({name: tensors[name] for name in tensors if places[name] == place}, folder / place)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def test_a_checkpoint_without_a_head(case: Case, tmp_path: Path) -> None:
    """Names then have no prefix. What is not tied has no W_U without its head."""
    case.net.body.save_pretrained(tmp_path)
    if not case.model.shape.tied:
        with pytest.raises(BadWeights, match=f"no tensor {case.model.unembeddings[0]}.weight"):
            describe(Checkpoint.open(tmp_path))
        return
    bare = describe(Checkpoint.open(tmp_path))
    same_vectors(bare, case.model)
    assert bare.prefix == ("decoder." if case.model.shape.architecture == "opt" else "")
    assert bare.shape.predicts == ("next" if case.model.shape.causal else "nearest")


def test_a_repeated_head_of_a_tied_model_is_left_alone(tmp_path: Path) -> None:
    folder = tiny_gpt2(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model = describe(Checkpoint.open(folder))
    assert model.W_U is model.W_E


def changed(folder: Path, tmp_path: Path, **fields: Any) -> Path:
    """A copy of a checkpoint whose config.json says something else."""
    copy = Path(shutil.copytree(folder, tmp_path / "changed"))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | fields))
    return copy


@pytest.mark.parametrize("family", ARCHETYPES)
@pytest.mark.parametrize("kind", ["w_o", "ff_key", "ff_value"])
def test_a_tensor_that_is_missing_or_does_not_fit(case: Case, tmp_path: Path, kind: str) -> None:
    (name,) = (name for name, module in case.net.body.named_modules() if module is case.net.module(1, kind))
    folder = changed(case.folder, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    (name,) = (each for each in tensors if each.endswith(f"{name}.weight"))
    weight = tensors.pop(name)
    for replaced in ({}, {name: weight[:, 1:].contiguous()}):
        save_file(tensors | replaced, folder / "model.safetensors", metadata={"format": "pt"})
        said = f"{name} of .* has the shape .* must be" if replaced else f"no tensor {name}"
        with pytest.raises(BadWeights, match=said):
            describe(Checkpoint.open(folder))


@pytest.mark.parametrize(("family", "change", "said"), [
    ("opt", {"word_embed_proj_dim": 16}, "like OPT-350m: its embeddings have 16 numbers, its blocks 32"),
    ("opt", {"do_layer_norm_before": False}, "like OPT-350m.*Every other size"),
    ("bert", {"is_decoder": True}, "used as a decoder"),
    ("roberta", {"is_decoder": True, "add_cross_attention": True}, "used as a decoder"),
    ("bert", {"position_embedding_type": "relative_key"}, "relative positions"),
    ("falcon", {"alibi": True}, "ALiBi positions.*7B, 11B, 40B, 180B"),
    ("falcon-40b", {"parallel_attn": False}, "norms that no Falcon has.*parallel_attn False"),
    ("falcon", {"num_ln_in_parallel_attn": 2}, "norms that no Falcon has.*num_ln_in_parallel_attn 2"),
    ("gpt2", {"model_type": "mamba"}, "mamba, which is not supported"),
])  # fmt: skip
def test_what_is_not_supported_within_a_family(
    family_folder: Callable[[str], Path], tmp_path: Path, family: str, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(UnsupportedArchitecture, match=said):
        describe(Checkpoint.open(changed(family_folder(family), tmp_path, **change)))


def test_an_unsupported_model_is_told_all_families() -> None:
    with pytest.raises(UnsupportedArchitecture) as error:
        model_class({"model_type": "t5"}, "some/model")
    assert all(name in str(error.value) for name in [*names(), *supported()])


MAKERS: dict[str, Callable[..., Path]] = {"gpt2": tiny_gpt2, "llama": tiny_llama}


@pytest.mark.parametrize(("family", "change", "said"), [
    ("gpt2", {"n_head": 5}, "32 cannot be divided by 5"),
    ("gpt2", {"n_embd": 48}, r"\(481, 32\)"),
    ("gpt2", {"n_layer": 0}, "n_layer is 0"),
    ("gpt2", {"n_inner": 100}, r"\(32, 128\).*must be \(32, 100\)"),
    ("gpt2", {"vocab_size": None}, "vocab_size is missing"),
    ("gpt2", {"tie_word_embeddings": False}, "lm_head.weight"),
    ("llama", {"num_key_value_heads": 3}, "cannot be divided by 3"),
    ("llama", {"num_key_value_heads": 4}, "k_proj"),
    ("llama", {"hidden_size": 2.5}, "hidden_size is 2.5"),
    ("llama", {"model_type": "gpt2"}, "wte.weight"),
])  # fmt: skip
def test_a_config_that_does_not_fit(tmp_path: Path, family: str, change: dict[str, Any], said: str) -> None:
    folder = MAKERS[family](tmp_path)
    config = json.loads((folder / "config.json").read_text()) | change
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadWeights, match=said):
        describe(Checkpoint.open(folder))


@pytest.mark.parametrize(("config", "said"), [
    ({"model_type": "t5"}, "t5.*Supported are: BERT, .*GPT-2, .*Llama"),
    ({"model_type": "mamba", "architectures": ["GPT2LMHeadModel"]}, "mamba"),
    ({"architectures": ["T5Model"]}, "T5Model"),
    ({}, "unknown"),
    ({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}}, "pictures.*text model alone .gemma3_text"),
    ({"model_type": ["gpt2"]}, "Supported are"),
    ({"model_type": "llama", "quantization_config": {"quant_method": "gptq"}}, "quantised.*gptq"),
])  # fmt: skip
def test_an_unsupported_architecture(config: dict[str, Any], said: str) -> None:
    with pytest.raises(UnsupportedArchitecture, match=said):
        model_class(config, "some/model")


def test_model_type_may_be_missing() -> None:
    assert model_class({"architectures": ["GPT2LMHeadModel"]}, "old/model") is supported()["gpt2"]


@pytest.mark.parametrize(("layer", "kind", "said"), [
    (2, "ff_key", "0 to 1"), (-1, "ff_key", "0 to 1"), (0, "ff_up", "only ff_key"), (0, "w_x", "only ff_key"),
])  # fmt: skip
def test_what_does_not_exist(tmp_path: Path, layer: int, kind: str, said: str) -> None:
    model = describe(Checkpoint.open(tiny_gpt2(tmp_path)))
    with pytest.raises(NotFound, match=said):
        model.vectors(layer, kind)
    with pytest.raises(NotFound, match="vo and qk"):
        model.factors(0, "ov")


def test_learned_positions(case: Case) -> None:
    """The first row of W_pos is what the net adds at a text's first position."""
    if case.model.shape.positions != "learned":
        return
    names = ("wpe", "embed_positions", "position_embeddings")
    (module,) = (module for name, module in case.net.body.named_modules() if name.endswith(names))
    added: list[Tensor] = []
    handle = module.register_forward_hook(lambda _, __, output: added.append(output))
    case.net.run(case.tokens)
    handle.remove()
    for model in (case.model, case.model.in_memory(case.net.net)):
        assert torch.equal(model.W_pos[: len(case.tokens)], added[0].view(len(case.tokens), -1))
