"""Backends by name: what goes together, what is refused, what is said at the start."""

import pytest
import torch
from torch.testing import assert_close

from nmt.errors import ConfigError
from nmt.models.backends import varlen
from nmt.models.backends.choice import backends, choose
from nmt.models.backends.explicit import attend_explicit
from nmt.models.backends.layout import Packed
from nmt.models.backends.sight import Sight, Spans
from tests.models.test_contract import REAL, SRC, TGT_IN
from tests.models.tiny import SLOW_VARIANTS, VARIANTS

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
POSITIONS = ["none", "sinusoidal", "learned", "rotary", "alibi"]
NAMES = list(backends(window=4, head_size=8))
REFUSED = {("varlen", "alibi"), ("linear", "rotary"), ("linear", "alibi")}


def chosen(name: str, positions: str = "none", dropout: float = 0.0):
    return choose(name, 4, 8, positions, dropout)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("name", NAMES)
def test_every_position_goes_with_every_backend_that_can_express_it(name, positions):
    if (name, positions) not in REFUSED:
        assert chosen(name, positions).name == name
        return
    with pytest.raises(ConfigError, match=rf"attention_backend={name} cannot express model.positions={positions}"):
        chosen(name, positions)


@pytest.mark.parametrize("name", ["tiled", "varlen", "linear"])
def test_dropout_on_weights_is_refused_where_there_are_none_to_drop(name):
    with pytest.raises(ConfigError, match=r"attention_dropout=0\.1.*set it to 0, or use attention_backend=auto, fused"):
        chosen(name, dropout=0.1)


@pytest.mark.parametrize("name", ["auto", "fused", "explicit", "window"])
def test_dropout_on_weights_goes_with_the_others(name):
    assert chosen(name, dropout=0.1).name == name


def test_an_unknown_backend_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"attention_backend=flash is unknown: use one of auto, fused, varlen"):
        chosen("flash")


@pytest.mark.parametrize("width", [0, -1, 2.5])
def test_a_window_that_sees_nothing_is_refused(width):
    with pytest.raises(ConfigError, match=rf"model.attention_window={width}: give a whole number"):
        choose("window", width, 8, "none", 0.0)


def test_varlen_on_a_cpu_is_refused_with_a_way_out(build):
    model = build("experiment=transformer attention_backend=varlen")
    with pytest.raises(ConfigError, match=r"varlen cannot run here \(it needs a CUDA device, not cpu\); use .*=auto"):
        model(SRC, TGT_IN)
    with pytest.raises(ConfigError, match="CUDA"):
        model.attention_on(CPU, torch.float32)


def test_varlen_in_single_precision_is_refused_with_a_way_out():
    with pytest.raises(ConfigError, match=r"16-bit products: precision=bf16"):
        chosen("varlen").teaching(CUDA, torch.float32)


def test_a_model_trained_with_varlen_translates_on_a_cpu(build):
    model = build("experiment=transformer attention_backend=varlen")
    plain = build("experiment=transformer")
    memory, expected = model.encode(SRC), plain.encode(SRC)
    assert_close(memory, expected)
    token = TGT_IN[:, 0]
    assert_close(model.step(token, model.start(memory), memory), plain.step(token, plain.start(expected), expected))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("auto", "fused, chosen by auto"),
        ("tiled", "tiled"),
        ("window", "window of 4 places, fused over the source"),
    ],
)
def test_what_runs_is_said(name, said):
    assert chosen(name).in_words(CPU, torch.float32, 0.0) == said


def test_the_cost_of_dropout_on_weights_is_said():
    said = chosen("auto", dropout=0.1).in_words(CPU, torch.float32, 0.1)
    assert said == "fused, chosen by auto; model.attention_dropout=0.1 costs the fused kernel on a CPU"


def test_auto_takes_varlen_where_it_runs_and_can_do_what_is_asked(monkeypatch):
    monkeypatch.setattr("nmt.models.backends.choice.why_not", lambda *_: "")
    assert chosen("auto").teaching(CUDA, torch.bfloat16).name == "varlen, without padding"
    assert chosen("auto", "rotary").teaching(CUDA, torch.bfloat16).name == "varlen, without padding"
    assert chosen("auto", "alibi").teaching(CUDA, torch.bfloat16).name == "fused"
    assert chosen("auto", dropout=0.1).teaching(CUDA, torch.bfloat16).name == "fused"


def sentence_by_sentence(q, k, v, spans: Spans, causal: bool):
    """What the CUDA kernel computes."""
    found = torch.zeros_like(q)
    for row in range(len(spans.queries) - 1):
        mine, theirs = (slice(starts[row], starts[row + 1]) for starts in (spans.queries, spans.keys))
        heads = [x.transpose(0, 1)[None] for x in (q[mine], k[theirs], v[theirs])]
        found[mine] = attend_explicit(*heads, Sight(causal=causal))[0][0].transpose(0, 1)
    return found


@pytest.fixture
def varlen_on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.models.backends.choice.why_not", lambda *_: "")
    monkeypatch.setattr(varlen, "kernel", sentence_by_sentence)


@pytest.mark.usefixtures("varlen_on_cpu")
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
@pytest.mark.parametrize("empty", [False, True])
def test_a_batch_without_padding_gives_what_a_padded_one_gives(build, positions, empty):
    model = build(f"experiment=transformer attention_backend=varlen model.positions={positions}").double()
    plain = build(f"experiment=transformer attention_backend=explicit model.positions={positions}").double()
    src, real = SRC.clone(), REAL.clone()
    if empty:
        src[1], real[1] = 0, False
    results = []
    for each in (model, plain):
        features = each(src, TGT_IN)
        each.project(features[real]).square().sum().backward()
        results.append([features[real], *(parameter.grad for parameter in each.parameters())])
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs)


@pytest.mark.usefixtures("varlen_on_cpu")
def test_no_padding_is_computed_anywhere(build):
    model = build("experiment=transformer attention_backend=varlen")
    pieces = []
    for module in model.modules():
        if isinstance(module, torch.nn.Linear) and module is not model.output:
            module.register_forward_hook(lambda _, args, __: pieces.append(args[0].shape[:-1].numel()))
    model(SRC, TGT_IN)
    assert set(pieces) == {int((SRC != 0).sum()), int(REAL.sum())}


def test_pieces_end_to_end_know_their_places_and_go_back_to_their_rows():
    packed = Packed(SRC, 0)
    assert packed.ids.tolist() == [[5, 6, 7, 22, 3, 9, 8, 3, 4, 3]]
    assert packed.places.numbers.tolist() == [[0, 1, 2, 3, 4, 0, 1, 2, 0, 1]]
    assert packed.around(None).spans.queries.tolist() == [0, 5, 8, 10]
    assert torch.equal(packed.spread(packed.ids[..., None])[..., 0], SRC)


@pytest.mark.parametrize("variant", [name for name in VARIANTS + SLOW_VARIANTS if "transformer" in name])
def test_the_path_that_gives_weights_gives_the_features_of_the_fast_one(build, variant):
    model = build(variant).double()
    features, weights = model.teach(SRC, TGT_IN, model.backend.explicit)
    assert_close(features, model(SRC, TGT_IN))
    assert_close(model.weights(SRC, TGT_IN), torch.stack(weights, dim=1))
    assert model.weights(SRC, TGT_IN).shape == (3, 2, 3, 7, 5)


def test_parameters_have_the_same_names_under_every_backend(build):
    names = [set(build(f"experiment=transformer attention_backend={name}").state_dict()) for name in NAMES]
    assert all(each == names[0] for each in names)
    learned = set(build("experiment=transformer model.positions=learned").state_dict())
    assert learned - names[0] == {"source_positions.table.weight", "target_positions.table.weight"}
