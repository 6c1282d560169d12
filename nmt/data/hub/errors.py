"""What went wrong with a dataset, in one line that says what to do next."""

import errno
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nmt.data.hub.layout import CONVERTED, unknown_name
from nmt.errors import UserError

NETWORK = ("ConnectionError", "TransportError", "LocalEntryNotFoundError")  # of requests, httpx and huggingface_hub
LONGEST = 300  # characters of a foreign message


@dataclass
class Heard:
    """What is known besides the exception: errors that were logged, and why the hub was not asked."""

    errors: list[str] = field(default_factory=list)
    offline: str = ""


def explain(error: Exception, path: str, name: str | None, on_hub: bool, heard: Heard) -> UserError:
    """The error of a library as ours."""
    chain = list(_chain(error))
    texts = [_line(str(one)) for one in chain]
    for one in chain:
        if isinstance(one, UserError):
            return one
    if any(_is_disk_full(one) for one in chain):
        return UserError(
            f"the disk is full: {path} needs more room ({_shown(texts)}); free some, or name a folder on another disk "
            f"with data.cache_dir=FOLDER or the environment variable HF_HOME"
        )
    if heard.offline:
        return UserError(_unreachable(path, _line(heard.offline)))
    listed = re.search(r"(?:available configs|Available): (\[.*?\])", texts[0])
    if listed and isinstance(error, ValueError):
        return unknown_name(path, name, re.findall(r"'([^']*)'", listed[1]))
    if "scripts are no longer supported" in texts[0] or "trust_remote_code" in texts[0]:
        instead = f"the hub's own conversion may be there: data.revision={CONVERTED}" if on_hub else "take it away"
        return UserError(f"{path} has a loading script, which is not run; {instead}")
    if on_hub and (message := _of_hub(path, name, chain, texts)):
        return UserError(message)
    reason = _line(heard.errors[-1]) if heard.errors else _shown(texts)
    return UserError(f"cannot read {path}: {reason}; is a file damaged or cut?")


def _of_hub(path: str, name: str | None, chain: Sequence[BaseException], texts: Sequence[str]) -> str:
    """What the hub has said, or what is between us and it; empty where it is something else."""
    kinds = {kind.__name__ for one in chain for kind in type(one).__mro__}
    if "gated dataset" in texts[0]:
        return (
            f"{path} is a gated dataset: ask for access at https://huggingface.co/datasets/{path}, "
            f"then log in: hf auth login"
        )
    if "Revision" in texts[0]:
        return f"{texts[0].rstrip('.')}; data.revision is a branch, a tag or a commit of {path}"
    if "DatasetNotFoundError" in kinds:
        return f"there is no dataset {path} on the hub, or it is a private one; and there is no such folder here"
    if kinds & set(NETWORK):
        return _unreachable(path, _shown(texts))
    if "HfHubHTTPError" in kinds:
        return f"the hub does not give {path}: {_shown(texts)}; try again later"
    if "Couldn't find cache" in texts[0] or kinds & {"EmptyDatasetError", "DataFilesNotFoundError"}:
        what = f"configuration {name}, nor a folder of that name" if name else "data files"
        return f"{path} has no {what}; look at https://huggingface.co/datasets/{path}/tree/main"
    return ""


def _unreachable(path: str, reason: str) -> str:
    return (
        f"cannot reach the hub for {path} ({reason.rstrip('.')}; no such folder here either); prepare on a machine "
        f"with a network: python -m nmt.prepare data=..., then copy its folder data/prepared/NAME here"
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_disk_full(error: BaseException) -> bool:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or "Not enough disk space" in str(error) or "No space left on device" in str(error)


def _shown(texts: Sequence[str]) -> str:
    """The last cause says most; where it says nothing, the one before."""
    return next((text for text in reversed(texts) if text), "no reason given")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
