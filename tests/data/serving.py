"""A web server on this machine that behaves well or badly, and published files for it to serve."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from unspur.data.files.file_set import FileSet, Published

CONTENT = {"a": b"first " * 3000, "b": b"second " * 2000}


def file_set(*mirrors: str, gz: bool = False, **options) -> FileSet:
    files = tuple(
        Published(name, f"md5:{hashlib.md5(content).hexdigest()}", len(content), gz=gz)
        for name, content in CONTENT.items()
    )
    return FileSet("letters", "The letters", files, ("letters", ""), mirrors, **options)


def packed(name: str) -> bytes:
    return gzip.compress(CONTENT[name], mtime=0)


@dataclass
class Server:
    files: dict[str, bytes]
    ranges: bool = True  # whether a part of a file can be asked for
    stop_after: int | None = None  # bytes of a body after which the connection is closed
    status: int | None = None  # answer with this error
    elsewhere: str | None = None  # send those who ask to this address
    address: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # (path, Range header)


@contextmanager
def serving(files: dict[str, bytes], **behaviour) -> Iterator[Server]:
    server = Server(files, **behaviour)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers["Range"]
            server.asked.append((self.path[1:], wanted))
            if server.elsewhere:
                self.send_response(302)
                self.send_header("Location", server.elsewhere)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if server.status:
                self.send_error(server.status)
                return
            content = server.files[self.path[1:]]
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.ranges else 0
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            self.wfile.write(content[start:][: server.stop_after])

        def log_message(self, *args) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    server.address = f"http://127.0.0.1:{httpd.server_port}/"
    try:
        yield server
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
