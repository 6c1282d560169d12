"""Neural machine translation: four systems trained, compared, evaluated and translated with."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.loading import load

__all__ = ["__version__", "load"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`nmt.load` brings torch in only when it is asked for."""
    if name == "load":
        from nmt.loading import load

        return load
    raise AttributeError(f"module 'nmt' has no attribute {name!r}")
