"""Text, ids and batches. Knows no model."""
