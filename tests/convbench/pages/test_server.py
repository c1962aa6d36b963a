"""The server of pages: it serves files of its folder under its own name, with a content policy."""

import base64
import hashlib
import http.client
import os
import threading

import pytest

from convbench.pages import server


@pytest.fixture
def site(tmp_path):
    """A folder to serve, in which links lead elsewhere, and the port it is served at."""
    folder, other = tmp_path / "site", tmp_path / "other"
    for made in (folder / "graphs", other):
        made.mkdir(parents=True)
    for path in (
        folder / "index.html",
        folder / "a.json",
        folder / "graphs" / "b.json",
        other / "index.html",
        other / "secret",
    ):
        path.write_text(f"<script>let a</script>{path.parent.name}")
    (folder / "hard").hardlink_to(folder / "a.json")
    (folder / "inside").symlink_to("a.json")
    (folder / "secret").symlink_to(other / "secret")
    (folder / "other").symlink_to(other)
    (folder / "page").mkdir()
    (folder / "page" / "index.html").symlink_to(other / "index.html")
    (folder / "circle").symlink_to("circle")
    os.mkfifo(folder / "pipe")
    with server.Server(folder, 0) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,)).start()
        try:
            yield serving.server_port
        finally:
            serving.shutdown()


def answer(port, path, method="GET", hosts=None):
    """Status, headers and content. hosts: the lines that say which one is asked, instead of the server's own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    for host in (f"127.0.0.1:{port}",) if hosts is None else hosts:
        connection.putheader("Host", host)
    connection.endheaders()
    reply = connection.getresponse()
    found = reply.status, reply.headers, reply.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LocalHost:{}"])
def test_its_own_names(site, host):
    assert answer(site, "/a.json", hosts=[host.format(site)])[::2] == (200, "<script>let a</script>site")


OTHERS = {
    "another name": ["evil.example:{}"],
    "none": [],
    "empty": [""],
    "another port": ["127.0.0.1:1"],
    "no port": ["127.0.0.1"],
    "one that begins like ours": ["localhost:{}.evil.example"],
    "two": ["127.0.0.1:{}", "evil.example"],
    "another address of this machine": ["127.0.0.2:{}"],
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("path", ["/", "/a.json", "/missing"])
def test_a_request_to_another_host_is_refused(site, path, others):
    """As from a page whose host name was changed to this machine's address after it was opened (DNS rebinding)."""
    status, headers, text = answer(site, path, hosts=[host.format(site) for host in OTHERS[others]])
    assert status == 421
    assert "site" not in text
    assert "Content-Security-Policy" in headers


@pytest.mark.parametrize(
    "path",
    ["/secret", "/other/secret", "/other/", "/other", "/page/", "/circle", "/pipe", "/graphs/", "/graphs", "/%00",
     "/../other/secret", "/%2e%2e/other/secret", "/..%2fother/secret", "/inside/", "/missing"],
)  # fmt: skip
def test_nothing_but_files_of_the_folder(site, path):
    """No link out of it, no pipe that would never end, and no list of a folder's files."""
    status, _, text = answer(site, path)
    assert status == 404
    assert "other" not in text
    assert "b.json" not in text


@pytest.mark.parametrize("path", ["/a.json", "/graphs/b.json", "/hard", "/inside", "/", "/index.html", "/a.json?timestamp=1"])
def test_every_file_of_the_folder(site, path):
    assert answer(site, path)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_no_other_method(site, method):
    status, _, text = answer(site, "/a.json", method)
    assert status == 501
    assert "site" not in text


def test_head_has_no_content(site):
    status, headers, text = answer(site, "/index.html", "HEAD")
    assert (status, text) == (200, "")
    assert headers["Content-Length"] == str(len("<script>let a</script>site"))


@pytest.mark.parametrize("path", ["/", "/a.json", "/missing"])
def test_what_a_browser_is_told(site, path):
    _, headers, _ = answer(site, path)
    policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
    inline = f"'sha256-{base64.b64encode(hashlib.sha256(b'let a').digest()).decode()}'"
    assert policy["script-src"].split() == ["'self'", *([inline] if path == "/" else [])]
    for what in ("default-src", "base-uri", "form-action", "frame-ancestors"):
        assert policy[what] == "'none'"
    told = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    assert {name: headers[name] for name in told} == told
