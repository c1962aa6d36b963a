"""Serves published pages to this machine's browsers alone, with a policy by which they load and run nothing else."""

from __future__ import annotations

import contextlib
import functools
import http
import http.server
import sys
from pathlib import Path

import click

from convbench.pages import content_policy

PORT = 8080  # the default, as asv's


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the files of one folder, to requests for the server's own name.

    A page of another host can change its name's address to this machine after it is opened (DNS rebinding) and read
    everything here, but its requests carry that name.
    """

    server: Server
    policy = content_policy.served(b"")

    def log_message(self, *_) -> None:
        """Log nothing: asv's page also requests graphs that do not exist, and works without them."""

    def parse_request(self) -> bool:
        """Read a request, and refuse one for another host."""
        if not super().parse_request():
            return False
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            explain = f"This server answers to {' and '.join(sorted(self.server.hosts))}"
            self.send_error(http.HTTPStatus.MISDIRECTED_REQUEST, explain=explain)
            return False
        return True

    def send_head(self):
        """Send the headers of a file, or 404: folders are not listed, and links must stay inside."""
        file = self._file()
        if file is None:
            self.send_error(http.HTTPStatus.NOT_FOUND)
            return None
        if file.suffix == ".html":
            self.policy = content_policy.served(file.read_bytes())
        return super().send_head()

    def _file(self) -> Path | None:
        """The regular file inside of the folder that is asked for if there is one."""
        try:
            found = Path(self.translate_path(self.path)).resolve()
            if found.is_dir():
                found = (found / "index.html").resolve()
            inside = found.is_relative_to(Path(self.directory).resolve())
            return found if inside and found.is_file() else None
        except (OSError, RuntimeError, ValueError):  # links in a circle, or a name that no file can have
            return None

    def end_headers(self) -> None:
        """Add the content policy to every answer."""
        self.send_header("Content-Security-Policy", self.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()


class Server(http.server.ThreadingHTTPServer):
    """A folder for this machine alone; `asv preview` would listen to every machine that reaches this one."""

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), functools.partial(Handler, directory=folder))
        ports = [f":{self.server_port}", *([""] if self.server_port == 80 else [])]  # browsers leave out HTTP's own
        self.hosts = {name + port for name in ("127.0.0.1", "localhost") for port in ports}

    def handle_error(self, request, client_address) -> None:
        """Log nothing if the browser closed the connection early."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(folder: Path, port: int | None) -> None:
    """Serve a folder until Ctrl-C; by default on PORT, or on any free one if that is taken.

    Raises ClickException if the port is not available.
    """
    try:
        server = Server(folder, port or PORT)
    except OSError as error:
        if port:
            raise click.ClickException(f"cannot serve on port {port}: {error.strerror}; choose another with --port") from None
        server = Server(folder, 0)
    with server, contextlib.suppress(KeyboardInterrupt):
        click.echo(f"serving {folder} at http://127.0.0.1:{server.server_port}/ until Ctrl-C")
        server.serve_forever()
    click.echo("\nstopped")
