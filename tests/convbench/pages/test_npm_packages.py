"""Packages of npm: the package of a URL, and the errors for damaged or untrusted ones."""

import contextlib
import gzip
import shutil
import tarfile

import click
import pytest
from dashboards import PAGE, STAND_INS, archive, failure, packed

from convbench.pages import npm_packages, vendor


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("/jquery-3.3.1.min.js", ("jquery", "3.3.1", "jquery.min.js")),
        ("/ajax/libs/flot/0.8.3/jquery.flot.time.min.js", ("flot-charts", "0.8.3", "jquery.flot.time.min.js")),
        ("/npm/flot-orderbars@1.0.0/js/a.orderBars.js", ("flot-orderbars", "1.0.0", "a.orderBars.js")),
        ("/ajax/libs/blueimp-md5/2.19.0/js/md5.min.js", ("blueimp-md5", "2.19.0", "md5.min.js")),
        ("/npm/bootstrap@3.4.1/dist/css/bootstrap.min.css?a=1", ("bootstrap", "3.4.1", "bootstrap.min.css")),
    ],
)
def test_a_library_is_known_by_its_address(path, library):
    found = npm_packages.Library.at(f"https://cdn.example{path}")
    assert (found.package, found.version, found.file) == library


DAMAGE = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "its last bytes missing": lambda content: content[:-4],
    "a byte flipped": lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
    "no package": lambda content: b"<html>not found</html>",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_copy_is_fetched_anew(project, npm, tools, tmp_path, cache, damage):
    kept = cache / "jquery-3.3.1.tgz"
    cache.parent.mkdir(parents=True, mode=0o700)
    shutil.copytree(tmp_path / "packages", cache)
    whole = kept.read_bytes()
    kept.write_bytes(DAMAGE[damage](whole))
    vendor.make_local(project)
    assert kept.read_bytes() == whole
    assert npm() == ["jquery@3.3.1"]
    assert (project.html / "vendor/jquery-3.3.1/dist/jquery.min.js").read_text() == "let jquery"
    shutil.copy(PAGE, project.html)
    kept.write_bytes(DAMAGE[damage](whole))
    (tools / "npm").unlink()
    assert "jquery@3.3.1, is not installed" in failure(project)


# Packages that are not to be trusted


PLANTED = {
    "above": ("package/../../../planted", tarfile.REGTYPE, "theirs"),
    "above, in the middle": ("package/a/../../../../planted", tarfile.REGTYPE, "theirs"),
    "absolute": ("/planted", tarfile.REGTYPE, "theirs"),
    "absolute behind the folder": ("package//planted", tarfile.REGTYPE, "theirs"),
    "backslashes": ("package/..\\..\\planted", tarfile.REGTYPE, "theirs"),
    "a drive": ("package/C:planted", tarfile.REGTYPE, "theirs"),
    "the folder itself": ("planted", tarfile.REGTYPE, "theirs"),
    "a link": ("package/planted", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": ("package/planted", tarfile.LNKTYPE, "package/dist/jquery.min.js"),
    "a pipe": ("package/planted", tarfile.FIFOTYPE, ""),
    "a folder above": ("package/../planted", tarfile.DIRTYPE, ""),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_package_with_a_file_elsewhere_is_refused(project, npm, tmp_path, cache, kind):
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(archive(PLANTED[kind]))
    said = failure(project)
    assert f"jquery@3.3.1 of npm has {PLANTED[kind][0]!r}, which is not a file inside the package" in said
    assert not list(cache.glob("*.tgz"))  # none is kept


def test_a_style_sheet_leads_to_no_file_elsewhere(project, npm, tmp_path):
    """Its addresses are looked up among the package's files, one of which lies above the folder of the pages."""
    files = {**STAND_INS["bootstrap-3.1.1"], "dist/css/bootstrap.min.css": "a{src:url(../../../../../../planted)}"}
    (tmp_path / "packages" / "bootstrap-3.1.1.tgz").write_bytes(packed({**files, "../../../../planted": "theirs"}))
    with contextlib.suppress(click.ClickException):
        vendor.make_local(project)
    assert not list(tmp_path.glob("**/planted"))
    assert "which is not a file inside the package" in failure(project)


def test_a_package_is_not_unpacked_without_end(project, npm, tmp_path):
    """Compressed a thousand to one, twice: nothing of it is kept or written."""
    large = gzip.compress(bytes(npm_packages.MAX_BYTES + 1))
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(large)
    assert "jquery@3.3.1 of npm has more than 64 MiB" in failure(project)
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(gzip.compress(archive(("package/a", tarfile.REGTYPE, "a"))))
    assert "what npm has fetched as jquery@3.3.1 is not a package" in failure(project)


def test_a_sparse_file_is_not_unpacked(project, npm, tmp_path):
    """The header of a sparse file gives the number of zeros."""
    header = tarfile.TarInfo("package/planted")
    header.type, header.size = tarfile.GNUTYPE_SPARSE, 512
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    block[386:482] = b"0" * 11 + b"\0" + b"0" * 8 + b"1000\0"[:4] + bytes(72)
    block[483:495] = b"10000000000\0"  # 1 GiB
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    whole = gzip.decompress(archive())
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(gzip.compress(bytes(block) + bytes(512) + whole))
    assert "jquery@3.3.1 of npm has 'package/planted', which is not a file" in failure(project)


def test_npm_fetches_no_package(project, npm, tmp_path):
    (tmp_path / "packages" / "jquery-3.3.1.tgz").write_bytes(b"<html>not found</html>")
    assert "what npm has fetched as jquery@3.3.1 is not a package" in failure(project)


def test_a_project_brings_no_packages_along(project, npm):
    """Packages in a clone's work folder are not used."""
    kept = project.work / "web" / "jquery-3.3.1.tgz"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(packed({"dist/jquery.min.js": "let theirs"}))
    vendor.make_local(project)
    assert "jquery@3.3.1" in npm()
    assert (project.html / "vendor/jquery-3.3.1/dist/jquery.min.js").read_text() == "let jquery"
