"""The contract of `Seq2Seq`, on which training, search and attention maps rely, for every system."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from nmt.loading import choose_precision
from nmt.models.local_attention import LocalP
from nmt.models.seq2seq import Seq2Seq, reorder
from tests.models.tiny import PRODUCT

# three sentences of 5, 3 and 2 source pieces, 4, 7 and 2 target pieces
SRC = torch.tensor([[5, 6, 7, 22, 3], [9, 8, 3, 0, 0], [4, 3, 0, 0, 0]])
TGT_IN = torch.tensor([[2, 5, 6, 18, 0, 0, 0], [2, 7, 8, 9, 10, 11, 12], [2, 4, 0, 0, 0, 0, 0]])
REAL = TGT_IN != 0


def padded(ids: Tensor, extra: int) -> Tensor:
    return torch.nn.functional.pad(ids, (0, extra))


def step_through(model: Seq2Seq, src: Tensor, tgt_in: Tensor) -> Tensor:
    memory = model.encode(src)
    state, logits = model.start(memory), []
    for token in tgt_in.unbind(dim=1):
        scores, state = model.step(token, state, memory)
        logits.append(scores)
    return torch.stack(logits, dim=1)


def test_features_become_one_score_for_each_target_piece(model):
    features = model(SRC, TGT_IN)
    assert features.shape[:2] == TGT_IN.shape
    assert model.project(features).shape == (3, 7, 19)


def test_a_later_target_piece_does_not_change_an_earlier_prediction(model):
    changed = TGT_IN.clone()
    changed[:, -1] = 13
    assert_close(model(SRC, changed)[:, :-1], model(SRC, TGT_IN)[:, :-1])


def test_an_earlier_target_piece_changes_a_later_prediction(model):
    changed = TGT_IN.clone()
    changed[1, 2] = 13
    assert not torch.allclose(model(SRC, changed)[1, -1], model(SRC, TGT_IN)[1, -1], rtol=0, atol=1e-9)


def test_every_source_piece_changes_the_prediction(model):
    reference = model(SRC, TGT_IN)
    for position in range(4):
        changed = SRC.clone()
        changed[0, position] = 14
        assert not torch.allclose(model(changed, TGT_IN)[0], reference[0], rtol=0, atol=1e-9)


def test_source_padding_does_not_change_a_prediction(model):
    assert_close(model(padded(SRC, 3), TGT_IN), model(SRC, TGT_IN))


def test_target_padding_does_not_change_a_prediction(model):
    assert_close(model(SRC, padded(TGT_IN, 2))[:, :7], model(SRC, TGT_IN))


def test_a_sentence_alone_gets_the_same_features_as_in_a_batch(model):
    together = model(SRC, TGT_IN)
    for row in range(3):
        src, tgt_in = SRC[row : row + 1], TGT_IN[row : row + 1]
        alone = model(src[src != 0][None], tgt_in[tgt_in != 0][None])
        assert_close(alone[0], together[row][REAL[row]])


def test_step_gives_what_teacher_forcing_gives(model):
    assert_close(step_through(model, SRC, TGT_IN)[REAL], model.project(model(SRC, TGT_IN))[REAL])


def test_step_agrees_with_teacher_forcing_in_inference_mode(model):
    with torch.inference_mode():
        assert_close(step_through(model, SRC, TGT_IN)[REAL], model.project(model(SRC, TGT_IN))[REAL])


def test_step_leaves_state_and_memory_as_they_were(model):
    memory = model.encode(SRC)
    state = model.start(memory)
    _, state = model.step(TGT_IN[:, 0], state, memory)
    first, _ = model.step(TGT_IN[:, 1], state, memory)
    model.step(TGT_IN[:, 2], state, memory)
    again, _ = model.step(TGT_IN[:, 1], state, memory)
    assert torch.equal(first, again)


def test_reordered_sentences_continue_as_if_they_had_been_in_the_batch_from_the_start(model):
    index = torch.tensor([2, 0, 0, 1])
    memory = model.encode(SRC)
    _, state = model.step(TGT_IN[:, 0], model.start(memory), memory)
    logits, _ = model.step(TGT_IN[index, 1], reorder(state, index), reorder(memory, index))
    assert_close(logits, step_through(model, SRC[index], TGT_IN[index, :2])[:, 1])


def test_every_tensor_of_memory_and_state_has_the_batch_first(model):
    memory = model.encode(SRC)
    state = model.start(memory)
    for nested in (memory, state, model.step(TGT_IN[:, 0], state, memory)[1]):
        assert {tensor.size(0) for tensor in tensors(nested)} == {3}


def tensors(state: object) -> list[Tensor]:
    if isinstance(state, Tensor):
        return [state]
    assert isinstance(state, tuple)
    return [tensor for part in state for tensor in tensors(part)]


def test_weights_sum_to_one_and_never_fall_on_padding(model):
    weights = model.weights(SRC, TGT_IN)
    if weights is None:
        pytest.skip("this system has no attention")
    B, L, H, T, S = weights.shape
    assert (B, T, S) == (3, 7, 5)
    assert weights.movedim(4, 1)[SRC == 0].eq(0).all()
    total = weights.sum(dim=-1)
    if any(isinstance(part, LocalP) for part in model.modules()):  # times a Gaussian, not normalised again
        assert total.gt(0).all()
        assert total.le(1).all()
    else:
        assert_close(total, torch.ones(B, L, H, T, dtype=weights.dtype))


def test_a_row_of_padding_gives_no_nan_forward_or_backward(model):
    src, tgt_in = SRC.clone(), TGT_IN.clone()
    src[1], tgt_in[2] = 0, 0
    features = model(src, tgt_in)
    model.project(features).square().mean().backward()
    assert features.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert step_through(model, src, tgt_in).isfinite().all()
    weights = model.weights(src, tgt_in)
    assert weights is None or weights[1].eq(0).all()


def test_a_row_of_padding_does_not_change_the_others(model):
    src = SRC.clone()
    src[1] = 0
    assert_close(model(src, TGT_IN)[[0, 2]], model(SRC, TGT_IN)[[0, 2]])


def test_gradients_reach_every_parameter(model):
    logits = model.project(model(SRC, TGT_IN))
    torch.nn.functional.cross_entropy(logits[REAL], TGT_IN[REAL]).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.numel() == 0 or parameter.grad.any(), name


def skip_if_bfloat16_is_unsupported(model: Seq2Seq) -> None:
    if any(isinstance(part, nn.LSTM) for part in model.modules()) and choose_precision("bf16", "cpu") != "bf16":
        pytest.skip("PyTorch's LSTM refuses bfloat16 on this processor, where trainings use fp32")


def test_bfloat16_products_give_nearly_the_same_predictions(model):
    skip_if_bfloat16_is_unsupported(model)
    model = model.float()
    expected = model.project(model(SRC, TGT_IN))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        forced = model.project(model(SRC, TGT_IN))
        stepped = step_through(model, SRC, TGT_IN)
    scale = expected[REAL].std()
    assert (forced.float() - expected)[REAL].abs().max() < 0.1 * scale
    assert (stepped.float() - expected)[REAL].abs().max() < 0.1 * scale


def test_bfloat16_gradients_point_in_the_same_direction(model):
    skip_if_bfloat16_is_unsupported(model)
    model = model.float()

    def gradient(enabled: bool) -> Tensor:
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            logits = model.project(model(SRC, TGT_IN))
        torch.nn.functional.cross_entropy(logits[REAL].float(), TGT_IN[REAL]).backward()
        return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])

    similarity = torch.cosine_similarity(gradient(True), gradient(False), dim=0)
    assert similarity > 0.99


def test_a_loaded_state_dict_restores_the_model(model):
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    expected = model(SRC, TGT_IN)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    model.load_state_dict(state)
    assert torch.equal(model(SRC, TGT_IN), expected)


@pytest.mark.slow
@pytest.mark.parametrize("overrides", PRODUCT)
def test_every_scorer_in_every_order_with_every_summary_keeps_the_contract(build, overrides):
    model = build(overrides).double()
    test_a_later_target_piece_does_not_change_an_earlier_prediction(model)
    test_every_source_piece_changes_the_prediction(model)
    test_source_padding_does_not_change_a_prediction(model)
    test_step_gives_what_teacher_forcing_gives(model)
    test_a_row_of_padding_does_not_change_the_others(model)
    test_gradients_reach_every_parameter(model)
    if any(word in overrides for word in ("=none", "=initial_state")):
        assert model.weights(SRC, TGT_IN) is None
    else:
        test_weights_sum_to_one_and_never_fall_on_padding(model)


@pytest.mark.parametrize(
    ("variant", "fixed", "per_piece"),
    [
        ("experiment=rnn", 10, 0),
        ("experiment=rnn attention=initial_state", 10, 0),
        (
            "experiment=rnn attention=mean",
            15,
            0,
        ),  # the mean; the initial state reads another vector
        ("experiment=rnn model.bridge=copy model.layers=2 model.cell=lstm", 40, 0),
        ("experiment=rnn model.bridge=copy model.summary=max", 20, 0),
        ("experiment=bahdanau", 0, 10),
        ("experiment=bahdanau attention=random", 0, 10),
        ("experiment=luong model.bridge=copy model.layers=2 model.cell=lstm", 30, 10),
        ("experiment=transformer", 0, 6),
    ],
)
def test_the_bottleneck_size_counts_the_numbers_that_reach_the_decoder(
    build, variant: str, fixed: int, per_piece: int
) -> None:
    assert build(variant).bottleneck_size() == (fixed, per_piece)
