"""Memory and time that a training will need, measured on two batches before it starts."""

import time
from typing import NamedTuple

import numpy as np
import psutil
import torch

from nmt.data.batching import collate
from nmt.data.encoded import EncodedPairs
from nmt.training.loop import Job, TrainingSettings, one_update


class Estimate(NamedTuple):
    """Of one update of average size, and at the widest batch."""

    seconds_per_update: float
    peak_bytes: int


def probe(job: Job, pairs: EncodedPairs, epoch: int, settings: TrainingSettings) -> Estimate:
    """Forward and backward on the widest and on a middle batch; weights and random numbers stay as they were."""
    plan = job.batches.plan(epoch)
    order = np.argsort(plan.sizes)
    with torch.random.fork_rng():
        job.model.train()
        for number in (order[-1], order[len(order) // 2]):
            start = time.perf_counter()
            one_update(job, [collate(pairs, plan[number])], settings)
            seconds = time.perf_counter() - start
    job.model.zero_grad(set_to_none=True)
    adam = 2 * sum(p.numel() * p.element_size() for p in job.model.parameters())
    if job.device.startswith("cuda"):
        return Estimate(seconds * settings.accumulate, torch.cuda.max_memory_allocated() + adam)
    return Estimate(seconds * settings.accumulate, psutil.Process().memory_info().rss + adam)
