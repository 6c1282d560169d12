"""The report as one HTML file that needs nothing else."""

from nmt.study.html.page import write_page

__all__ = ["write_page"]
