"""What a training is watched by: NLL per piece on the validation pairs, and BLEU of their greedy translations."""

import torch

from nmt.data.batching import in_order
from nmt.data.prepared import Prepared
from nmt.data.tokenizer import PAD
from nmt.decoding.search import SearchSettings
from nmt.decoding.translator import Translator
from nmt.evaluation.metrics import corpus_bleu
from nmt.training import loss
from nmt.training.loop import Job, Metrics, autocast


def measure(job: Job, prepared: Prepared, bleu_sentences: int) -> Metrics:
    """{} where there is no validation text; BLEU with the tokenizer that the target language asks for."""
    if not len(prepared.valid):
        return {}
    model, device, batching = job.teacher_forced, job.device, job.batches.settings
    nll = torch.zeros((), device=device)
    pieces = 0
    for batch in in_order(prepared.valid, batching):
        batch = batch.to(device)
        with autocast(device, job.precision):
            features = model(batch.src, batch.tgt_in)
            nll += loss.evaluate(model.project, features, batch.tgt_out, PAD)
        pieces += int(batch.tgt_lengths.sum())
    metrics = {"valid/nll": nll.item() / pieces}
    pairs = prepared.valid_pairs[:bleu_sentences]
    if pairs:
        translator = Translator(job.model, prepared.source, prepared.target, batching.max_pieces, device)  # type: ignore[arg-type]
        outputs = translator.translate([pair.source for pair in pairs], SearchSettings(beam=1))
        references = [[pair.target for pair in pairs]]
        metrics["valid/bleu"] = corpus_bleu(outputs, references, prepared.facts["target_language"]).score
    return metrics
