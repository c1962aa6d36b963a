"""Archives that the gate does not write are refused by the comment script before it reads much."""

import contextlib
import io
import itertools
import tracemalloc
import zipfile

import pytest
from comments import GOOD, RUN, comment, packed, report, script
from hypothesis import given, settings
from hypothesis import strategies as st


def twice(data):
    """The archive with gate.json in it a second time."""
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("gate.json", GOOD["gate_json"])
    return stream.getvalue()


def flagged(data, flag):
    """The archive with a flag set of every file, where both headers of it have one."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        places = [(member.header_offset + 6, b"PK\x03\x04") for member in archive.infolist()]
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
        places.append((at + 8, b"PK\x01\x02"))
    changed = bytearray(data)
    for place, _ in places:
        changed[place : place + 2] = (int.from_bytes(changed[place : place + 2], "little") | flag).to_bytes(2, "little")
    return bytes(changed)


PACKED_OTHERWISE = "encrypted or not packed as the gate's are"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cannot be read"),
        (b"<html>no zip</html>", "cannot be read"),
        (packed(**GOOD)[:-30], "cannot be read"),
        (packed(**GOOD | {"gate_json": b"\xff\xfe"}), "cannot be read"),
        (packed(**GOOD | {"gate_json": " \n"}), "gate.json is not JSON"),
        (packed(**GOOD | {"gate_json": "0" * (50 << 20)}), "gate.json has more than 4194304 bytes"),  # 50 kB as a zip
        (bytes((4 << 20) + 1), "the artifact has more than 4194304 bytes"),
        (packed(zipfile.ZIP_BZIP2, **GOOD), PACKED_OTHERWISE),
        (packed(zipfile.ZIP_LZMA, **GOOD), PACKED_OTHERWISE),
        (flagged(packed(**GOOD), 1), PACKED_OTHERWISE),
        (flagged(packed(**GOOD), 0x40), PACKED_OTHERWISE),
        (flagged(packed(**GOOD), 0x2000), PACKED_OTHERWISE),
        (twice(packed(**GOOD)), "two of one name"),
        (packed(**GOOD, **{f"more{place}": "" for place in range(9)}), "more files than the gate writes"),
    ],
    ids=itertools.count(),
)
@pytest.mark.parametrize("declared", ["truly", "falsely"])
def test_what_the_gate_does_not_write_is_refused(github, data, said, declared):
    server = github(data)
    if declared == "falsely":
        server.artifacts[0]["size_in_bytes"] = 1000
    status, printed = comment(server)
    assert status == 1
    assert printed.startswith("refused: ")
    assert said in printed
    assert server.written() == []
    too_large = len(data) > 4 << 20 and declared == "truly"
    assert (("GET", "/elsewhere/3") in server.asked) != too_large  # not even fetched


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_a_size_that_the_archive_lies_about_is_not_believed(github, size):
    data = packed(**GOOD | {"gate_json": "0" * (5 << 20)})
    lie = data.replace((5 << 20).to_bytes(4, "little"), size.to_bytes(4, "little"))
    assert lie != data
    server = github(lie)
    assert comment(server)[0] == 1
    assert server.written() == []


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_report_is_read_stored_and_deflated(method):
    assert script.read(packed(method, **GOOD)) == report()


@pytest.mark.parametrize("name", ["gate_json", "gate_md"])
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_is_not_inflated(method, name):
    """24 MiB of zeros; files that are not read may have any size."""
    bomb = packed(method, **GOOD | {name: bytes(24 << 20)})
    assert len(bomb) < 4 << 20
    refused = method != zipfile.ZIP_DEFLATED or name != "gate_md"
    tracemalloc.start()
    try:
        with pytest.raises(script.Refused) if refused else contextlib.nullcontext():
            script.read(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_archive_is_refused_or_read(data):
    damaged = bytearray(packed(**GOOD))
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(script.Refused):
        found = script.read(bytes(damaged))
        assert found is None or script.compose(found, RUN)
