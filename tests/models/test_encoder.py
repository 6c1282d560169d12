"""Reading: against the library, in both orders, and what a summary is."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from nmt.errors import ConfigError
from nmt.models.encoder import Encoded, Encoder, pick, reversal

LENGTHS = torch.tensor([6, 4, 1])
MASK = torch.arange(6) < LENGTHS[:, None]
LIBRARY = {"gru": nn.GRU, "lstm": nn.LSTM}


def encoder(cell: str = "gru", **settings: object) -> Encoder:
    usual = {"layers": 1, "bidirectional": True, "reverse_source": False, "summary": "last_both", "keep_last": False}
    return Encoder(5, 7, cell=cell, dropout=0.0, **{**usual, **settings})


def packed_by_the_library(ours: Encoder, cell: str, layers: int, embedded: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    library = LIBRARY[cell](5, 7, num_layers=layers, bidirectional=True, batch_first=True)
    weights = {}
    for number, layer in enumerate(ours.layers):
        for reader, ending in zip(layer.readers, ("", "_reverse"), strict=True):
            weights |= {f"{name[:-1]}{number}{ending}": weight for name, weight in reader.named_parameters()}
    library.load_state_dict(weights)
    states, last = library(nn.utils.rnn.pack_padded_sequence(embedded, LENGTHS, batch_first=True))
    padded, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
    return padded, last if isinstance(last, tuple) else (last,)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_encoder_reads_what_a_packed_bidirectional_rnn_reads(cell):
    ours, embedded = encoder(cell), torch.randn(3, 6, 5)
    states, (h, *_) = packed_by_the_library(ours, cell, 1, embedded)
    encoded = ours(embedded, MASK)
    assert_close(encoded.states[MASK], states[MASK])
    assert_close(encoded.summary, torch.cat([h[0], h[1]], dim=-1))
    assert encoded.last == ()


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_last_states_of_every_layer_are_those_of_a_packed_rnn(cell):
    ours, embedded = encoder(cell, layers=2, keep_last=True), torch.randn(3, 6, 5)
    states, finals = packed_by_the_library(ours, cell, 2, embedded)
    encoded = ours(embedded, MASK)
    assert_close(encoded.states[MASK], states[MASK])
    for number, layer in enumerate(encoded.last):
        for tensor, final in zip(layer, finals, strict=True):
            assert_close(tensor, torch.cat([final[2 * number], final[2 * number + 1]], dim=-1))


@pytest.mark.parametrize("keep_last", [False, True])
def test_a_reversed_source_is_read_from_its_end_and_its_states_stay_in_the_sources_order(keep_last):
    settings = {"bidirectional": False, "cell": "lstm", "layers": 2, "keep_last": keep_last}
    backward, forward = encoder(reverse_source=True, **settings), encoder(**settings)
    forward.load_state_dict(backward.state_dict())
    embedded = torch.randn(3, 6, 5)
    turned = reversal(LENGTHS, 6)
    ours, theirs = backward(embedded, MASK), forward(pick(embedded, turned), MASK)
    assert_close(ours.states[MASK], pick(theirs.states, turned)[MASK])
    assert_close(ours.summary, theirs.summary)
    assert_close(ours.summary, ours.states[:, 0])  # the first piece is read last
    assert_close(ours.last, theirs.last)


def summarised(summary: str, **settings: object) -> Encoded:
    torch.manual_seed(2)
    return encoder(summary=summary, **settings)(torch.randn(3, 6, 5), MASK)


def test_a_summary_is_the_last_states_the_maximum_or_the_mean():
    states = summarised("last_both").states
    for row, n in enumerate(LENGTHS):
        sentence = states[row, :n]
        both = torch.cat([sentence[-1, :7], sentence[0, 7:]])
        assert_close(summarised("last_both").summary[row], both)
        assert_close(summarised("last_forward").summary[row], sentence[-1, :7])
        assert_close(summarised("max").summary[row], sentence.amax(dim=0))
        assert_close(summarised("mean").summary[row], sentence.mean(dim=0))


def test_an_unknown_summary_and_a_stack_of_no_layers_are_refused():
    with pytest.raises(ConfigError, match=r"model\.summary=middle is unknown: use one of last_forward, last_both"):
        encoder(summary="middle")
    with pytest.raises(ConfigError, match=r"model\.layers=0"):
        encoder(layers=0)


def test_a_reversal_leaves_padding_in_its_place_and_undoes_itself():
    places = reversal(torch.tensor([4, 2, 1]), 4)
    assert places.tolist() == [[3, 2, 1, 0], [1, 0, 2, 3], [0, 1, 2, 3]]
    assert places.gather(1, places).tolist() == [[0, 1, 2, 3]] * 3
