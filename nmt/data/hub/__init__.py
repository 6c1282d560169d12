"""Parallel text from the Hugging Face hub, or from local files laid out as there: data=hub."""

from nmt.data.hub.hub_corpus import HubCorpus

__all__ = ["HubCorpus"]
