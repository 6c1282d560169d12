"""Every recurrent variant learns to reverse short strings; local attention's window follows a copied source."""

from typing import NamedTuple

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor, nn

from nmt.models.seq2seq import Seq2Seq
from nmt.training import loss
from tests.models.tiny import BOS, EOS, NEW_SCORERS, ORDERS, PAD, SCORERS, composed

PIECES, FIRST, RATE = 12, 4, 1e-2  # eight symbols beside the special pieces
SIZE = {
    "embedding": 16,
    "attention": 16,
    "dropout": 0.0,
    "bahdanau": {"encoder": 16, "hidden": 32},
    "luong": {"encoder": 16, "hidden": 32},
}

REVERSE = [
    *[f"{order} attention={scorer}" for order in ORDERS for scorer in (*SCORERS, *NEW_SCORERS)],
    "experiment=rnn",
    "experiment=rnn model.summary=max",
    "experiment=rnn model.summary=mean",
    "experiment=rnn model.summary=last_forward model.bidirectional=false",
    "experiment=rnn model.context_in_readout=false",
    "experiment=rnn model.bidirectional=false model.reverse_source=true",
    "experiment=rnn attention=initial_state",
    "experiment=rnn attention=initial_state model.cell=lstm model.layers=2 model.bridge=copy",
    "experiment=luong attention=none",
    "experiment=luong attention=initial_state",
    "experiment=luong model.cell=lstm model.bidirectional=false model.encoder_size=32 model.bridge=copy",
    "experiment=bahdanau model.cell=lstm model.layers=3",
]
MORE_UPDATES = [
    ("experiment=bahdanau model.layers=8", 300),
    ("experiment=bahdanau model.init=groundhog", 900),
    ("experiment=luong model.init=uniform", 600),
]


class Strings(NamedTuple):
    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor


def strings(random: torch.Generator, count: int, shortest: int, longest: int, reverse: bool) -> Strings:
    src = torch.full((count, longest + 1), PAD)
    tgt_in, tgt_out = src.clone(), src.clone()
    lengths = torch.randint(shortest, longest + 1, (count,), generator=random).tolist()
    for row, n in enumerate(lengths):
        symbols = torch.randint(FIRST, PIECES, (n,), generator=random)
        target = symbols.flip(0) if reverse else symbols
        src[row, :n], src[row, n] = symbols, EOS
        tgt_in[row, 0], tgt_in[row, 1 : n + 1] = BOS, target
        tgt_out[row, :n], tgt_out[row, n] = target, EOS
    return Strings(src, tgt_in, tgt_out)


def trained(overrides: str, updates: int, shortest: int, longest: int, reverse: bool) -> Seq2Seq:
    config = composed(overrides).copy()
    OmegaConf.set_struct(config, False)
    config.size = SIZE
    model = instantiate(config.model)(src_vocab_size=PIECES, tgt_vocab_size=PIECES, pad_id=PAD)
    optimizer = torch.optim.Adam(model.parameters())
    random = torch.Generator().manual_seed(2)
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = RATE * min(1, (update + 1) / 20) * (1 - update / updates)
        batch = strings(random, 32, shortest, longest, reverse)
        pieces = int((batch.tgt_out != PAD).sum())
        loss.backward_in_chunks(model.project, model(batch.src, batch.tgt_in), batch.tgt_out, PAD, 0.0, pieces)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


@torch.inference_mode()
def accuracy(model: Seq2Seq, test: Strings) -> float:
    """The share of target pieces that greedy decoding gets right."""
    memory = model.encode(test.src)
    state, token, output = model.start(memory), test.tgt_in[:, 0], []
    for _ in range(test.tgt_out.size(1)):
        logits, state = model.step(token, state, memory)
        token = logits.argmax(dim=-1)
        output.append(token)
    real = test.tgt_out != PAD
    return (torch.stack(output, dim=1) == test.tgt_out)[real].double().mean().item()


@pytest.mark.slow
@pytest.mark.parametrize(("overrides", "updates"), [*((variant, 300) for variant in REVERSE), *MORE_UPDATES])
def test_reverse_is_learned(overrides: str, updates: int) -> None:
    model = trained(overrides, updates, shortest=2, longest=4, reverse=True)
    assert accuracy(model, strings(torch.Generator().manual_seed(9), 300, 2, 4, reverse=True)) >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ["bahdanau", "luong"])
def test_the_predicted_window_follows_the_piece_that_is_copied(
    experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = f"experiment={experiment} attention=local_p model.attention.window=2"
    model = trained(overrides, 300, shortest=6, longest=10, reverse=False)
    test = strings(torch.Generator().manual_seed(9), 300, 6, 10, reverse=False)
    assert accuracy(model, test) >= 0.95

    centres: list[Tensor] = []
    predict = model.attention.centre
    monkeypatch.setattr(model.attention, "centre", lambda *query: centres.append(predict(*query)) or centres[-1])
    weights = model.weights(test.src, test.tgt_in)[:, 0, 0]
    centre, real = torch.cat(centres, dim=1), test.tgt_out != PAD
    steps = torch.arange(centre.size(1)).expand_as(centre)
    assert (centre - steps)[real].abs().mean() < 0.75  # it lies at the piece that comes next
    distance = (torch.arange(weights.size(-1)) - centre[..., None]).abs()
    assert weights[distance > 2].eq(0).all()  # and nothing outside has a weight
    assert weights[real].argmax(dim=-1).eq(steps[real]).double().mean() > 0.8
