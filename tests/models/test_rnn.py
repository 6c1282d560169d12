"""Recurrent cells and the encoder: against the library, reversed sources, and summaries."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from nmt.models.rnn import (
    GRU,
    LSTM,
    Cell,
    CellStack,
    Encoder,
    EncoderOutput,
    gather_positions,
    reversed_positions,
)

LENGTHS = torch.tensor([6, 4, 1])
MASK = torch.arange(6) < LENGTHS[:, None]
LIBRARY = {"gru": nn.GRU, "lstm": nn.LSTM}


@pytest.mark.parametrize(("kind", "library"), [(GRU, nn.GRUCell), (LSTM, nn.LSTMCell)])
def test_a_cell_computes_what_the_librarys_does(kind: type[Cell], library):
    ours, theirs = kind(5, 7), library(5, 7)
    theirs.load_state_dict(
        {
            "weight_ih": ours.input_to_gates.weight,
            "weight_hh": ours.hidden_to_gates.weight,
            "bias_ih": ours.input_to_gates.bias,
            "bias_hh": ours.hidden_to_gates.bias,
        }
    )
    x, state = torch.randn(3, 5), tuple(torch.randn(3, 7) for _ in range(kind.state_tensors))
    expected = theirs(x, state[0] if kind is GRU else state)
    assert_close(ours(ours.project(x), state), (expected,) if kind is GRU else expected)


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_the_state_stays_in_float32_under_autocast(kind):
    stack = CellStack(kind, 5, 7, layers=2, dropout=0.0)
    state = tuple(tuple(torch.zeros(3, 7) for _ in range(kind.state_tensors)) for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        projected = stack.project(torch.randn(3, 5))
        state = stack(projected, state)
    assert projected.dtype == torch.bfloat16
    assert {tensor.dtype for layer in state for tensor in layer} == {torch.float32}


def encoder(cell: str = "gru", **settings: object) -> Encoder:
    defaults = {
        "layers": 1, "bidirectional": True, "reverse_source": False, "summary": "last_both", "keep_final_states": False,
    }  # fmt: skip
    return Encoder(5, 7, cell=cell, dropout=0.0, **(defaults | settings))


def library_outputs(ours: Encoder, cell: str, layers: int, embedded: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    library = LIBRARY[cell](5, 7, num_layers=layers, bidirectional=True, batch_first=True)
    weights = {}
    for number, layer in enumerate(ours.layers):
        for direction, ending in zip(layer.directions, ("", "_reverse"), strict=True):
            weights |= {f"{name[:-1]}{number}{ending}": weight for name, weight in direction.named_parameters()}
    library.load_state_dict(weights)
    states, final = library(nn.utils.rnn.pack_padded_sequence(embedded, LENGTHS, batch_first=True))
    padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
    return padded, final if isinstance(final, tuple) else (final,)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_encoder_equals_a_packed_bidirectional_rnn(cell):
    ours, embedded = encoder(cell), torch.randn(3, 6, 5)
    states, (h, *_) = library_outputs(ours, cell, 1, embedded)
    encoded = ours(embedded, MASK)
    assert_close(encoded.states[MASK], states[MASK])
    assert_close(encoded.summary, torch.cat([h[0], h[1]], dim=-1))
    assert encoded.final_states == ()


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_final_states_of_every_layer_are_those_of_a_packed_rnn(cell):
    ours, embedded = encoder(cell, layers=2, keep_final_states=True), torch.randn(3, 6, 5)
    states, finals = library_outputs(ours, cell, 2, embedded)
    encoded = ours(embedded, MASK)
    assert_close(encoded.states[MASK], states[MASK])
    for number, layer in enumerate(encoded.final_states):
        for tensor, final in zip(layer, finals, strict=True):
            assert_close(tensor, torch.cat([final[2 * number], final[2 * number + 1]], dim=-1))


@pytest.mark.parametrize("keep_final_states", [False, True])
def test_a_reversed_source_keeps_its_states_in_the_order_of_the_source(keep_final_states):
    settings = {"bidirectional": False, "cell": "lstm", "layers": 2, "keep_final_states": keep_final_states}
    reversing, plain = encoder(reverse_source=True, **settings), encoder(**settings)
    plain.load_state_dict(reversing.state_dict())
    embedded = torch.randn(3, 6, 5)
    backwards = reversed_positions(LENGTHS, 6)
    ours, expected = reversing(embedded, MASK), plain(gather_positions(embedded, backwards), MASK)
    assert_close(ours.states[MASK], gather_positions(expected.states, backwards)[MASK])
    assert_close(ours.summary, expected.summary)
    assert_close(ours.summary, ours.states[:, 0])  # the first piece is read last
    assert_close(ours.final_states, expected.final_states)


def encode_with(summary: str, **settings: object) -> EncoderOutput:
    torch.manual_seed(2)
    return encoder(summary=summary, **settings)(torch.randn(3, 6, 5), MASK)


def test_a_summary_is_the_last_states_the_maximum_or_the_mean():
    states = encode_with("last_both").states
    for row, n in enumerate(LENGTHS):
        sentence = states[row, :n]
        last_states = torch.cat([sentence[-1, :7], sentence[0, 7:]])
        assert_close(encode_with("last_both").summary[row], last_states)
        assert_close(encode_with("last_forward").summary[row], sentence[-1, :7])
        assert_close(encode_with("max").summary[row], sentence.amax(dim=0))
        assert_close(encode_with("mean").summary[row], sentence.mean(dim=0))


def test_reversed_positions_leave_padding_and_are_their_own_inverse():
    positions = reversed_positions(torch.tensor([4, 2, 1]), 4)
    assert positions.tolist() == [[3, 2, 1, 0], [1, 0, 2, 3], [0, 1, 2, 3]]
    assert positions.gather(1, positions).tolist() == [[0, 1, 2, 3]] * 3
