"""Choosing a backend: supported combinations, refusals, and the line that describes it."""

import pytest
import torch
from torch.testing import assert_close

from nmt.errors import ConfigError
from nmt.models.backends import Backend, available_backends, choose_backend, varlen
from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.masks import AttentionMask, CuSeqlens
from nmt.models.backends.packing import PackedBatch
from tests.models.test_contract import REAL, SRC, TGT_IN
from tests.models.tiny import SLOW_VARIANTS, VARIANTS

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
POSITIONS = ["none", "sinusoidal", "learned", "rotary", "alibi"]
NAMES = list(available_backends(window=4, head_size=8))
REFUSED = {("varlen", "alibi"), ("linear", "rotary"), ("linear", "alibi")}


def choose(name: str, positions: str = "none", dropout: float = 0.0) -> Backend:
    return choose_backend(name, 4, 8, positions, dropout)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("name", NAMES)
def test_positions_work_with_every_backend_that_supports_them(name, positions):
    if (name, positions) not in REFUSED:
        assert choose(name, positions).name == name
        return
    with pytest.raises(ConfigError, match=rf"attention_backend={name} does not support positions={positions}"):
        choose(name, positions)


@pytest.mark.parametrize("name", ["tiled", "varlen", "linear"])
def test_dropout_on_weights_is_refused_by_kernels_without_weights(name):
    with pytest.raises(ConfigError, match=r"attention_dropout=0\.1.*set it to 0, or use attention_backend=auto, fused"):
        choose(name, dropout=0.1)


@pytest.mark.parametrize("name", ["auto", "fused", "explicit", "window"])
def test_the_other_backends_support_dropout_on_weights(name):
    assert choose(name, dropout=0.1).name == name


def test_varlen_on_a_cpu_is_refused_with_an_alternative(build):
    model = build("experiment=transformer attention_backend=varlen")
    with pytest.raises(ConfigError, match=r"varlen cannot run here \(it needs a CUDA device, not cpu\); use .*=auto"):
        model(SRC, TGT_IN)
    with pytest.raises(ConfigError, match="CUDA"):
        model.describe_attention(CPU, torch.float32)


def test_varlen_in_single_precision_is_refused_with_an_alternative():
    with pytest.raises(ConfigError, match=r"16-bit products: precision=bf16"):
        choose("varlen").for_training(CUDA, torch.float32)


def test_a_model_trained_with_varlen_translates_on_a_cpu(build):
    model = build("experiment=transformer attention_backend=varlen")
    reference = build("experiment=transformer")
    memory, expected = model.encode(SRC), reference.encode(SRC)
    assert_close(memory, expected)
    token = TGT_IN[:, 0]
    assert_close(
        model.step(token, model.start(memory), memory), reference.step(token, reference.start(expected), expected)
    )


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("auto", "fused, chosen by auto"),
        ("tiled", "tiled"),
        ("window", "window of 4 positions, fused over the source"),
    ],
)
def test_the_kernel_is_described(name, description):
    assert choose(name).describe(CPU, torch.float32, 0.0) == description


def test_the_cost_of_dropout_on_weights_is_described():
    description = choose("auto", dropout=0.1).describe(CPU, torch.float32, 0.1)
    assert description == "fused, chosen by auto; attention_dropout=0.1 rules out the fused kernel on a CPU"


def test_auto_takes_varlen_where_it_runs_and_supports_the_settings(monkeypatch):
    monkeypatch.setattr("nmt.models.backends.reason_unavailable", lambda *_: "")
    assert choose("auto").for_training(CUDA, torch.bfloat16).name == "varlen, without padding"
    assert choose("auto", "rotary").for_training(CUDA, torch.bfloat16).name == "varlen, without padding"
    assert choose("auto", "alibi").for_training(CUDA, torch.bfloat16).name == "fused"
    assert choose("auto", dropout=0.1).for_training(CUDA, torch.bfloat16).name == "fused"


def sentence_by_sentence(q, k, v, cu_seqlens: CuSeqlens, causal: bool):
    """A reference of the CUDA kernel."""
    outputs = torch.zeros_like(q)
    for row in range(len(cu_seqlens.cu_seqlens_q) - 1):
        queries, keys = (slice(starts[row], starts[row + 1]) for starts in cu_seqlens[:2])
        heads = [x.transpose(0, 1)[None] for x in (q[queries], k[keys], v[keys])]
        outputs[queries] = attend_explicit(*heads, AttentionMask(causal=causal))[0][0].transpose(0, 1)
    return outputs


@pytest.fixture
def varlen_on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.models.backends.reason_unavailable", lambda *_: "")
    monkeypatch.setattr(varlen, "varlen_kernel", sentence_by_sentence)


@pytest.mark.usefixtures("varlen_on_cpu")
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
@pytest.mark.parametrize("empty", [False, True])
def test_a_packed_batch_gives_what_a_padded_one_gives(build, positions, empty):
    model = build(f"experiment=transformer attention_backend=varlen model.positions={positions}").double()
    reference = build(f"experiment=transformer attention_backend=explicit model.positions={positions}").double()
    src, real = SRC.clone(), REAL.clone()
    if empty:
        src[1], real[1] = 0, False
    results = []
    for variant in (model, reference):
        features = variant(src, TGT_IN)
        variant.project(features[real]).square().sum().backward()
        results.append([features[real], *(parameter.grad for parameter in variant.parameters())])
    for packed, padded in zip(*results, strict=True):
        assert_close(packed, padded)


@pytest.mark.usefixtures("varlen_on_cpu")
def test_no_padding_is_computed_anywhere(build):
    model = build("experiment=transformer attention_backend=varlen")
    pieces = []
    for module in model.modules():
        if isinstance(module, torch.nn.Linear) and module is not model.output_layer:
            module.register_forward_hook(lambda _, args, __: pieces.append(args[0].shape[:-1].numel()))
    model(SRC, TGT_IN)
    assert set(pieces) == {int((SRC != 0).sum()), int(REAL.sum())}


def test_packed_pieces_keep_their_positions_and_unpack_into_their_rows():
    packed = PackedBatch(SRC, 0)
    assert packed.ids.tolist() == [[5, 6, 7, 22, 3, 9, 8, 3, 4, 3]]
    assert packed.position_ids.ids.tolist() == [[0, 1, 2, 3, 4, 0, 1, 2, 0, 1]]
    assert packed.attention_mask(packed).cu_seqlens.cu_seqlens_q.tolist() == [0, 5, 8, 10]
    assert torch.equal(packed.unpack(packed.ids[..., None])[..., 0], SRC)


@pytest.mark.parametrize("variant", [name for name in VARIANTS + SLOW_VARIANTS if "transformer" in name])
def test_the_kernel_that_returns_weights_gives_the_features_of_the_fast_one(build, variant):
    model = build(variant).double()
    features, weights = model.teacher_force(SRC, TGT_IN, model.backend.explicit)
    assert_close(features, model(SRC, TGT_IN))
    assert_close(model.weights(SRC, TGT_IN), torch.stack(weights, dim=1))
    assert model.weights(SRC, TGT_IN).shape == (3, 2, 3, 7, 5)


def test_parameters_have_the_same_names_under_every_backend(build):
    names = [set(build(f"experiment=transformer attention_backend={name}").state_dict()) for name in NAMES]
    assert all(other == names[0] for other in names)
    learned = set(build("experiment=transformer model.positions=learned").state_dict())
    assert learned - names[0] == {"source_positions.table.weight", "target_positions.table.weight"}
