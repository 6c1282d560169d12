"""What sets the two recurrent decoders apart, and the parts they share."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from nmt.errors import ConfigError
from nmt.models.cells import GRU, LSTM, Cell, Stack, cell_class, top
from nmt.models.encoder import Encoder, reversal

SRC = torch.tensor([[5, 6, 7, 22, 3], [9, 8, 3, 0, 0]])
TGT_IN = torch.tensor([[2, 5, 6, 18], [2, 7, 0, 0]])


@pytest.mark.parametrize(("kind", "library"), [(GRU, nn.GRUCell), (LSTM, nn.LSTMCell)])
def test_a_cell_computes_what_the_librarys_does(kind: type[Cell], library):
    ours, theirs = kind(5, 7), library(5, 7)
    theirs.load_state_dict(
        {"weight_ih": ours.W.weight, "weight_hh": ours.U.weight, "bias_ih": ours.W.bias, "bias_hh": ours.U.bias}
    )
    x, state = torch.randn(3, 5), tuple(torch.randn(3, 7) for _ in range(kind.tensors))
    expected = theirs(x, state[0] if kind is GRU else state)
    assert_close(ours(ours.project(x), state), (expected,) if kind is GRU else expected)


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_the_state_stays_in_float32_under_autocast(kind):
    stack = Stack(kind, 5, 7, layers=2, dropout=0.0)
    state = tuple(tuple(torch.zeros(3, 7) for _ in range(kind.tensors)) for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        projected = stack.project(torch.randn(3, 5))
        state = stack(projected, state)
    assert projected.dtype == torch.bfloat16
    assert {tensor.dtype for layer in state for tensor in layer} == {torch.float32}


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_encoder_reads_what_a_packed_bidirectional_rnn_reads(cell):
    encoder = Encoder(
        5, 7, layers=1, cell=cell, bidirectional=True, dropout=0.0,
        reverse_source=False, summary="last_both", keep_last=False,
    )  # fmt: skip
    library = {"gru": nn.GRU, "lstm": nn.LSTM}[cell](5, 7, bidirectional=True, batch_first=True)
    forward, backward = encoder.layers[0].readers
    weights = dict(forward.named_parameters())
    weights |= {f"{name}_reverse": weight for name, weight in backward.named_parameters()}
    library.load_state_dict(weights)

    embedded, lengths = torch.randn(3, 6, 5), torch.tensor([6, 4, 1])
    mask = torch.arange(6) < lengths[:, None]
    packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True)
    states, last = library(packed)
    h = last if cell == "gru" else last[0]
    encoded = encoder(embedded, mask)
    assert_close(encoded.states[mask], nn.utils.rnn.pad_packed_sequence(states, batch_first=True)[0][mask])
    assert_close(encoded.summary, torch.cat([h[0], h[1]], dim=-1))


def test_a_reversal_leaves_padding_in_its_place_and_undoes_itself():
    places = reversal(torch.tensor([4, 2, 1]), 4)
    assert places.tolist() == [[3, 2, 1, 0], [1, 0, 2, 3], [0, 1, 2, 3]]
    assert places.gather(1, places).tolist() == [[0, 1, 2, 3]] * 3


def test_bahdanau_asks_with_the_state_before_the_cell(build):
    model = build("experiment=bahdanau")
    memory = model.encode(SRC)
    start = model.start(memory)
    first = model.weights(SRC, TGT_IN)[:, 0, 0, 0]
    assert_close(first, model.attention(top(start.hidden)[:, None], memory)[1][:, 0])
    other_word = TGT_IN.clone()
    other_word[:, 0] = 9
    assert torch.equal(model.weights(SRC, other_word)[:, 0, 0, 0], first)


def test_luong_asks_with_the_state_after_the_cell(build):
    model = build("experiment=luong")
    other_word = TGT_IN.clone()
    other_word[:, 0] = 9
    assert not torch.allclose(model.weights(SRC, other_word)[:, 0, 0, 0], model.weights(SRC, TGT_IN)[:, 0, 0, 0])


@pytest.mark.parametrize("scorer", ["dot", "additive"])
def test_luong_without_feeding_looks_for_all_steps_at_once_as_step_by_step(build, scorer):
    model = build(f"experiment=luong model.input_feeding=false attention={scorer}").double()
    memory = model.encode(SRC)
    state = model.start(memory)
    reads = model.cells.project(model.target(TGT_IN)).unbind(dim=1)
    for at_once, one_by_one in zip(model.unfed(reads, state, memory), model.fed(reads, state, memory), strict=True):
        assert_close(at_once, one_by_one)


def test_feeding_changes_the_second_step_and_not_the_first(build):
    model = build("experiment=luong")
    memory = model.encode(SRC)
    state = model.start(memory)
    assert not state.fed.any()
    _, state = model.step(TGT_IN[:, 0], state, memory)
    fed, _ = model.step(TGT_IN[:, 1], state, memory)
    unfed, _ = model.step(TGT_IN[:, 1], state._replace(fed=torch.zeros_like(state.fed)), memory)
    assert not torch.allclose(fed, unfed)


def test_context_from_the_shown_weights_is_the_context_that_was_used(build):
    model = build("experiment=luong model.input_feeding=false").double()
    memory = model.encode(SRC)
    weights = model.weights(SRC, TGT_IN)[:, 0, 0]
    hidden, tops = model.start(memory).hidden, []
    for read in model.cells.project(model.target(TGT_IN)).unbind(dim=1):
        hidden = model.cells(read, hidden)
        tops.append(top(hidden))
    both = torch.cat([weights @ memory.states, torch.stack(tops, dim=1)], dim=-1)
    assert_close(torch.tanh(model.combine(both)), model(SRC, TGT_IN))


@pytest.mark.parametrize("attention", ["none", "initial_state"])
def test_a_system_without_attention_has_no_weights_to_show(build, attention):
    assert build(f"experiment=rnn attention={attention}").weights(SRC, TGT_IN) is None


def test_initial_state_only_hands_over_nothing_but_the_start(build):
    model = build("experiment=rnn attention=initial_state")
    memory = model.encode(SRC)
    start = model.start(memory)
    blank = memory._replace(states=memory.states * 0, keys=memory.keys * 0, summary=memory.summary * 0)
    assert torch.equal(model.step(TGT_IN[:, 0], start, memory)[0], model.step(TGT_IN[:, 0], start, blank)[0])


def test_dropout_acts_in_training_only(build):
    model = build("experiment=bahdanau model.dropout=0.5 model.layers=2")
    assert torch.equal(model(SRC, TGT_IN), model(SRC, TGT_IN))
    model.train()
    assert not torch.equal(model(SRC, TGT_IN), model(SRC, TGT_IN))


def test_an_unknown_cell_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"model\.cell=elman is unknown: use one of gru, lstm"):
        cell_class("elman")


def test_a_dot_product_of_unequal_sizes_is_refused_when_the_model_is_built(build):
    with pytest.raises(ConfigError, match="attention=general"):
        build("experiment=luong attention=dot model.encoder_size=7")
