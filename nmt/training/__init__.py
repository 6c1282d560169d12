"""Loss, schedule, the loop, checkpoints, trackers. Knows batches and a callable model, no text."""
