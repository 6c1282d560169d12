"""Scores of translations against references, with their uncertainty and their dependence on length."""
