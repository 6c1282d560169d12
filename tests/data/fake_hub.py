"""A hub of one's own on this machine: as much of the Hugging Face hub's interface as fetching a dataset takes."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]


@dataclass
class FakeHub:
    """Datasets by name and branch; `refusals` are datasets that are answered with a status and the hub's error code."""

    datasets: dict[tuple[str, str], Files] = field(default_factory=dict)
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    url: str = ""

    def branch(self, name: str, revision: str) -> Files | None:
        of_commit = {commit(*key): files for key, files in self.datasets.items()}
        return of_commit.get(revision) or self.datasets.get((name, revision))


def commit(name: str, revision: str = "main") -> str:
    """The newest one of a branch."""
    return hashlib.sha1(f"{name}@{revision}".encode()).hexdigest()


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        commit = ""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            self.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            self.do_GET()

        def do_GET(self) -> None:
            parts = unquote(urlsplit(self.path).path).strip("/").split("/")
            if parts[0] == "datasets" and "resolve" in parts:
                self.answer_file(*_divided(parts[1:], "resolve"))
            elif parts[:2] == ["api", "datasets"]:
                self.answer_api(parts[2:])
            else:
                self.answer(b"", 200 if parts == [""] else 404)

        def answer_api(self, parts: list[str]) -> None:
            verb = next((word for word in ("revision", "tree", "paths-info") if word in parts), "")
            name, revision, inside = _divided(parts, verb) if verb else ("/".join(parts), "main", "")
            files = self.files_of(name, revision)
            if files is None:
                return
            folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
            entries = [{"type": "directory", "path": path, "oid": "0", "size": 0} for path in sorted(folders)]
            entries += [
                {"type": "file", "path": path, "oid": hashlib.sha1(content).hexdigest(), "size": len(content)}
                for path, content in files.items()
            ]
            if verb == "paths-info":
                found = [entry for entry in entries if entry["path"] in self.asked["paths"]]
            elif verb == "tree":
                deep = "recursive=true" in self.path.lower()
                start = f"{inside}/" if inside else ""
                below = [entry for entry in entries if str(entry["path"]).startswith(start)]
                found = [entry for entry in below if deep or "/" not in str(entry["path"])[len(start) :]]
            else:
                siblings = [{"rfilename": path} for path in files]
                self.answer(json.dumps({"id": name, "sha": self.commit, "siblings": siblings}).encode())
                return
            if verb == "tree" and inside and not found:
                self.answer(b"", 404, "EntryNotFound")
            else:
                self.answer(json.dumps(found).encode())

        def answer_file(self, name: str, revision: str, path: str) -> None:
            files = self.files_of(name, revision)
            if files is not None:
                content = files.get(path)
                self.answer(content or b"", 404 if content is None else 200, "EntryNotFound" if content is None else "")

        def files_of(self, name: str, revision: str) -> Files | None:
            """None where the answer is given already: a refusal."""
            if name in hub.refusals:
                self.answer(b"", *hub.refusals[name])
                return None
            files = hub.branch(name, revision)
            self.commit = commit(name, revision) if (name, revision) in hub.datasets else revision
            if files is None:
                known = any(dataset == name for dataset, _ in hub.datasets)
                self.answer(b"", 404, "RevisionNotFound" if known else "RepoNotFound")
            return files

        def answer(self, content: bytes, status: int = 200, error: str = "") -> None:
            self.send_response(status)
            headers = {
                "Content-Length": str(len(content)),
                "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
                "X-Repo-Commit": self.commit,
                "X-Error-Code": error,
            }
            for header, value in headers.items():
                if value:
                    self.send_header(header, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _divided(parts: list[str], verb: str) -> tuple[str, str, str]:
    """owner/name/verb/revision/path -> name, revision, path; refs/convert/parquet is one revision."""
    at = parts.index(verb)
    rest = parts[at + 1 :]
    length = 3 if rest[:1] == ["refs"] else 1
    return "/".join(parts[:at]), "/".join(rest[:length]), "/".join(rest[length:])
