"""Ways to compute attention with several heads: one signature, one module each; `choice.py` knows them by name."""
