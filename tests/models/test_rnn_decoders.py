"""The two recurrent decoders: where they differ, and what they share."""

import pytest
import torch
from torch.testing import assert_close

from nmt.errors import ConfigError
from nmt.models.control_attention import MeanOfStates
from nmt.models.rnn import top_output

SRC = torch.tensor([[5, 6, 7, 22, 3], [9, 8, 3, 0, 0]])
TGT_IN = torch.tensor([[2, 5, 6, 18], [2, 7, 0, 0]])


def test_bahdanau_attends_with_the_state_before_the_cell(build):
    model = build("experiment=bahdanau")
    memory = model.encode(SRC)
    start = model.start(memory)
    first = model.weights(SRC, TGT_IN)[:, 0, 0, 0]
    assert_close(first, model.attention(top_output(start.hidden)[:, None], memory)[1][:, 0])
    other_piece = TGT_IN.clone()
    other_piece[:, 0] = 9
    assert torch.equal(model.weights(SRC, other_piece)[:, 0, 0, 0], first)


def test_luong_attends_with_the_state_after_the_cell(build):
    model = build("experiment=luong")
    other_piece = TGT_IN.clone()
    other_piece[:, 0] = 9
    assert not torch.allclose(model.weights(SRC, other_piece)[:, 0, 0, 0], model.weights(SRC, TGT_IN)[:, 0, 0, 0])


@pytest.mark.parametrize("scorer", ["dot", "additive"])
def test_luong_without_input_feeding_attends_for_all_steps_at_once(build, scorer):
    model = build(f"experiment=luong model.input_feeding=false attention={scorer}").double()
    memory = model.encode(SRC)
    projected = model.decoder.project(model.target_embedding(TGT_IN)).unbind(dim=1)
    assert_close(model.without_input_feeding(projected, memory), model.with_input_feeding(projected, memory))


def test_input_feeding_changes_the_second_step_and_not_the_first(build):
    model = build("experiment=luong")
    memory = model.encode(SRC)
    state = model.start(memory)
    assert not state.attentional.any()
    _, state = model.step(TGT_IN[:, 0], state, memory)
    with_feeding, _ = model.step(TGT_IN[:, 1], state, memory)
    without_feeding, _ = model.step(
        TGT_IN[:, 1], state._replace(attentional=torch.zeros_like(state.attentional)), memory
    )
    assert not torch.allclose(with_feeding, without_feeding)


def test_the_returned_weights_give_the_context_that_was_used(build):
    model = build("experiment=luong model.input_feeding=false").double()
    memory = model.encode(SRC)
    weights = model.weights(SRC, TGT_IN)[:, 0, 0]
    hidden, outputs = model.start(memory).hidden, []
    for projected in model.decoder.project(model.target_embedding(TGT_IN)).unbind(dim=1):
        hidden = model.decoder(projected, hidden)
        outputs.append(top_output(hidden))
    combined = torch.cat([weights @ memory.states, torch.stack(outputs, dim=1)], dim=-1)
    assert_close(torch.tanh(model.combine(combined)), model(SRC, TGT_IN))


@pytest.mark.parametrize("attention", ["none", "initial_state"])
def test_a_system_without_attention_has_no_weights(build, attention):
    assert build(f"experiment=rnn attention={attention}").weights(SRC, TGT_IN) is None


def test_with_initial_state_only_nothing_else_reaches_the_decoder(build):
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


def test_a_dot_product_of_unequal_sizes_is_refused_when_the_model_is_built(build):
    with pytest.raises(ConfigError, match="attention=general"):
        build("experiment=luong attention=dot model.encoder_size=7")


def test_only_the_cell_reads_a_context_that_is_kept_out_of_the_readout(build):
    model = build("experiment=rnn model.context_in_readout=false")
    assert model.readout.W.in_features == 10 + 6
    assert model.context_to_gates.weight.any()
    default = build("experiment=rnn")
    assert default.readout.W.in_features == 10 + 10 + 6


def test_the_readout_may_have_a_width_of_its_own_unless_it_is_tied(build):
    model = build("experiment=bahdanau model.readout_size=7")
    assert model(SRC, TGT_IN).shape == (2, 4, 7)
    with pytest.raises(ConfigError, match=r"readout_size=null"):
        build("experiment=bahdanau model.readout_size=7 model.tie_embeddings=target")


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("experiment", ["rnn", "luong"])
def test_copied_initial_states_are_the_final_states_of_the_encoder(build, experiment, cell):
    model = build(f"experiment={experiment} model.bridge=copy model.layers=3 model.cell={cell}")
    final_states = model.encoder(model.source_embedding(SRC), SRC != 0).final_states
    assert_close(model.start(model.encode(SRC)).hidden, final_states)
    assert len(final_states) == 3
    assert not list(model.bridge.parameters())


def test_copying_states_of_another_size_is_refused_with_an_alternative(build):
    with pytest.raises(ConfigError, match=r"states of size 10 into a decoder of size 11.*bridge=learned"):
        build("experiment=luong model.bridge=copy model.hidden_size=11 attention=general")


def test_an_unused_backward_direction_is_refused(build):
    with pytest.raises(ConfigError, match=r"add bidirectional=false"):
        build("experiment=rnn model.summary=last_forward")
    assert build("experiment=bahdanau model.summary=last_forward").bridge.input_size == 5


def test_an_lstm_has_twice_the_state_of_a_gru_of_its_size(build):
    def state_size(settings: str) -> int:
        model = build(f"experiment=rnn attention=initial_state model.bridge=copy {settings}")
        state = model.start(model.encode(SRC)).hidden
        return sum(tensor[0].numel() for layer in state for tensor in layer)

    assert state_size("model.cell=gru model.layers=2") == 2 * 10
    assert state_size("model.cell=lstm model.layers=2") == 2 * (10 + 10)
    wider = "model.encoder_size=10 model.hidden_size=20"
    assert state_size(f"model.cell=gru model.layers=2 {wider}") == state_size("model.cell=lstm model.layers=2")


def test_eight_layers_are_built_and_run(build):
    model = build("experiment=bahdanau model.layers=8 model.cell=lstm")
    assert len(model.encoder.layers) == len(model.decoder.cells) == 8
    assert model(SRC, TGT_IN).isfinite().all()


def test_a_constant_mean_context_is_the_mean_summary(build):
    constant, summarised = build("experiment=luong attention=mean"), build("experiment=luong attention=none")
    assert isinstance(constant.attention, MeanOfStates)
    memory = constant.encode(SRC)
    context, _ = constant.attention(torch.zeros(2, 1, 10), memory)
    summarised.load_state_dict(constant.state_dict())
    summarised.encoder.summary = "mean"
    assert_close(context[:, 0], summarised.encode(SRC).summary)


@pytest.mark.parametrize("experiment", ["bahdanau", "luong"])
def test_weights_over_a_reversed_source_are_in_the_order_of_the_source(build, experiment):
    model = build(f"experiment={experiment} model.reverse_source=true").double()
    weights = model.weights(SRC, TGT_IN)
    assert weights[1, ..., 3:].eq(0).all()
    assert weights[1, ..., :3].gt(0).all()


def test_the_state_counts_the_target_steps(build):
    for experiment in ("bahdanau", "luong"):
        model = build(f"experiment={experiment}")
        memory = model.encode(SRC)
        state = model.start(memory)
        for step in range(3):
            assert state.steps.tolist() == [[step], [step]]
            _, state = model.step(TGT_IN[:, step], state, memory)
