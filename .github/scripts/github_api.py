"""The part of GitHub's API that is under one repository, for scripts that have nothing but the standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

MAX_ARTIFACT = 4 << 20  # bytes


class Refused(Exception):
    """The artifact is not what the gate writes."""


class Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: the token would travel along."""

    def redirect_request(self, *_):
        return None


class Api:
    """The part of GitHub's API that is under one repository."""

    def __init__(self, address: str, repository: str, token: str):
        self.root = f"{address}/repos/{repository}"
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        self.opener = urllib.request.build_opener(Stay)

    def open(self, method: str, path: str, content: object = None):
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.root}/{path}", data, self.headers, method=method)
        return self.opener.open(request, timeout=30)

    def ask(self, method: str, path: str, content: object = None):
        with self.open(method, path, content) as answer:
            return json.load(answer)

    def download(self, path: str) -> bytes:
        """A file that the API redirects to; it lies elsewhere, where no token is sent. Raises Refused where it is large."""
        try:
            answer = self.open("GET", path)
        except urllib.error.HTTPError as error:
            if error.code not in (301, 302, 303, 307, 308):
                raise
            answer = urllib.request.urlopen(error.headers["Location"], timeout=30)
        with answer:
            data = answer.read(MAX_ARTIFACT + 1)
        if len(data) > MAX_ARTIFACT:
            raise Refused(f"the artifact has more than {MAX_ARTIFACT} bytes")
        return data
