"""What sets the two recurrent decoders apart, and the parts they share."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from nmt.errors import ConfigError
from nmt.models.cells import GRU, LSTM, Cell, Stack, cell_class, top
from nmt.models.controls import MeanOfStates

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


def test_only_the_cell_sees_a_context_that_is_kept_out_of_the_readout(build):
    model = build("experiment=rnn model.context_in_readout=false")
    assert model.readout.W.in_features == 10 + 6
    assert model.C.weight.any()
    everywhere = build("experiment=rnn")
    assert everywhere.readout.W.in_features == 10 + 10 + 6


def test_the_readout_may_have_a_width_of_its_own_unless_it_is_tied(build):
    model = build("experiment=bahdanau model.readout_size=7")
    assert model(SRC, TGT_IN).shape == (2, 4, 7)
    with pytest.raises(ConfigError, match=r"model\.readout_size=null"):
        build("experiment=bahdanau model.readout_size=7 model.tie_embeddings=target")


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("experiment", ["rnn", "luong"])
def test_a_copied_start_is_where_each_layer_of_the_encoder_ended(build, experiment, cell):
    model = build(f"experiment={experiment} model.bridge=copy model.layers=3 model.cell={cell}")
    last = model.encoder(model.source(SRC), SRC != 0).last
    assert_close(model.start(model.encode(SRC)).hidden, last)
    assert len(last) == 3
    assert not list(model.bridge.parameters())


def test_a_copied_start_of_another_width_is_refused_with_a_way_out(build):
    with pytest.raises(ConfigError, match=r"states of 10 numbers into a decoder of 11.*model\.bridge=learned"):
        build("experiment=luong model.bridge=copy model.hidden_size=11 attention=general")
    with pytest.raises(ConfigError, match=r"model\.bridge=tunnel is unknown: use one of learned, copy"):
        build("experiment=luong model.bridge=tunnel")


def test_a_backward_reading_without_any_use_is_refused(build):
    with pytest.raises(ConfigError, match=r"add model\.bidirectional=false"):
        build("experiment=rnn model.summary=last_forward")
    assert build("experiment=bahdanau model.summary=last_forward").bridge.input_size == 5


def test_an_lstm_carries_twice_the_numbers_of_a_gru_of_its_width(build):
    def carried(settings: str) -> int:
        model = build(f"experiment=rnn attention=initial_state model.bridge=copy {settings}")
        state = model.start(model.encode(SRC)).hidden
        return sum(tensor[0].numel() for layer in state for tensor in layer)

    assert carried("model.cell=gru model.layers=2") == 2 * 10
    assert carried("model.cell=lstm model.layers=2") == 2 * (10 + 10)
    wider = "model.encoder_size=10 model.hidden_size=20"
    assert carried(f"model.cell=gru model.layers=2 {wider}") == carried("model.cell=lstm model.layers=2")


def test_eight_layers_are_built_and_run(build):
    model = build("experiment=bahdanau model.layers=8 model.cell=lstm")
    assert len(model.encoder.layers) == len(model.cells.cells) == 8
    assert model(SRC, TGT_IN).isfinite().all()


def test_a_constant_mean_context_is_the_mean_summary(build):
    constant, summarised = build("experiment=luong attention=mean"), build("experiment=luong attention=none")
    assert isinstance(constant.attention, MeanOfStates)
    memory = constant.encode(SRC)
    context, _ = constant.attention(torch.zeros(2, 1, 10), memory)
    summarised.load_state_dict(constant.state_dict())
    summarised.encoder.summarise = build("experiment=luong model.summary=mean").encoder.summarise
    assert_close(context[:, 0], summarised.encode(SRC).summary)


@pytest.mark.parametrize("experiment", ["bahdanau", "luong"])
def test_reversed_reading_shows_its_weights_in_the_order_of_the_source(build, experiment):
    model = build(f"experiment={experiment} model.reverse_source=true").double()
    weights = model.weights(SRC, TGT_IN)
    assert weights[1, ..., 3:].eq(0).all()
    assert weights[1, ..., :3].gt(0).all()


def test_the_state_knows_its_target_step(build):
    for experiment in ("bahdanau", "luong"):
        model = build(f"experiment={experiment}")
        memory = model.encode(SRC)
        state = model.start(memory)
        for step in range(3):
            assert state.steps.tolist() == [[step], [step]]
            _, state = model.step(TGT_IN[:, step], state, memory)
