"""What `python -m nmt.benchmark` measures: one suite a module."""
