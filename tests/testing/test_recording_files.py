"""``claude_wire.testing.Recording``: loading recordings from folders and files, and their steps."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import recordings
from claude_wire.testing import Recording, Replay, Step
from claude_wire.testing.player import files as _files
from each import each
from replayed import ASKING, GZIPPED, ONE_SHOT, RESULT, parsed, recording, request, response, run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")


# --- recordings -------------------------------------------------------------------------------------------------------


@each("name", recordings.names(), str)
def test_steps_are_both_streams_whole_and_in_order(name: str) -> None:
    loaded = recording(name)
    for direction, stream in (("in", loaded.stdin), ("out", loaded.stdout)):
        lines = [step.data for step in loaded.steps if step.direction == direction]
        assert b"".join(lines) == stream
        assert all(data.count(b"\n") == 1 and data.endswith(b"\n") for data in lines[:-1])
    seconds = [step.seconds for step in loaded.steps]
    assert seconds == sorted(seconds)


def causes(steps: tuple[Step, ...]) -> Iterator[tuple[bool, bool]]:
    """For each answered control request, yield whether the host sent it, and whether it precedes its answer."""
    places: dict[tuple[str, str, str], int] = {}
    for index, step in enumerate(steps):
        message = parsed(step.data)
        if message.get("type") == "control_request":
            places[step.direction, "request", message.get("request_id", "")] = index
        elif message.get("type") == "control_response":
            places[step.direction, "response", message["response"].get("request_id", "")] = index
    for (direction, kind, identity), index in places.items():
        other = "in" if direction == "out" else "out"
        answer = places.get((other, "response", identity))
        if kind == "request" and answer is not None:
            yield direction == "in", index < answer


@each("name", [name for name in recordings.names() if recordings.load(name).stdin], str)
def test_without_a_recorded_order_causes_come_before_effects(name: str) -> None:
    files = {file: data for file, data in recordings.load(name).files.items() if file != "order.jsonl"}
    likely = Recording.from_files(files)
    assert b"".join(step.data for step in likely.steps if step.direction == "in") == likely.stdin
    assert b"".join(step.data for step in likely.steps if step.direction == "out") == likely.stdout
    assert all(first for _, first in causes(likely.steps))


def test_likely_order_is_the_recorded_one_for_a_host_that_does_one_thing_at_a_time() -> None:
    files = {name: data for name, data in ASKING.files.items() if name != "order.jsonl"}
    assert Recording.from_files(files).steps == ASKING.steps


def test_what_belongs_to_nothing_does_not_disturb_the_likely_order() -> None:
    steps = [*ASKING.steps[:7], ("", "in", request("never answered", "ask")), ("", "in", response("never asked"))]
    files = {
        "stdin.ndjson": b"".join(data for _, direction, data in [*steps, *ASKING.steps[7:]] if direction == "in"),
        "stdout.ndjson": ASKING.stdout,
    }
    likely = [step for step in Recording.from_files(files).steps if b"never" not in step.data]
    assert likely == list(ASKING.steps)


def test_times_of_reads_are_those_of_lines_without_an_order() -> None:
    reads = b"[0.5, 3]\n[1.5, 4]\n[2.5, 1]\n"
    loaded = Recording.from_files({"stdout.ndjson": b"{}\n{1}\n{", "stdout.reads.jsonl": reads})
    assert loaded.steps == ((0.5, "out", b"{}\n"), (1.5, "out", b"{1}\n"), (2.5, "out", b"{"))
    assert loaded.reads == (b"{}\n", b"{1}\n", b"{")


def test_reads_are_the_pieces_that_were_read() -> None:
    original = recordings.load("17_sdk_client_full")
    assert [len(data) for data in recording("17_sdk_client_full").reads] == original.reads


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    original = recording("05_perm_cancel")
    saved = original.save(tmp_path / "new" / "05_perm_cancel")
    loaded = Recording.load(tmp_path / "new" / "05_perm_cancel")
    assert saved.path == loaded.path == str(tmp_path / "new" / "05_perm_cancel")
    assert loaded.files == original.files
    assert (loaded.name, loaded.exit_code, loaded.argv[:2]) == ("05_perm_cancel", 1, ("-p", "--output-format"))
    assert {stat.S_IMODE(file.stat().st_mode) for file in Path(saved.path or "").iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("out.ndjson", RESULT),
        ("out.ndjson.gz", GZIPPED),
        ("out.ndjson.xz", lzma.compress(RESULT)),
        ("folder/stdout.ndjson", RESULT),
        ("folder/stdout.ndjson.gz", GZIPPED),
        ("folder/stdout.ndjson.xz", lzma.compress(RESULT)),
    ],
)
def test_files_and_folders_packed_or_not(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(data)
    loaded = Recording.load(tmp_path / name.partition("/")[0])
    assert (loaded.stdout, loaded.stdin, loaded.stderr, loaded.exit_code, loaded.argv) == (RESULT, b"", b"", 0, ())
    assert loaded.steps == ((0.0, "out", RESULT),)
    assert run(Replay(loaded).argv()).stdout == RESULT


@pytest.mark.parametrize("name", ["a.gz", "a.xz"])
@pytest.mark.parametrize("data", [b"", b"nonsense", GZIPPED[:-9], lzma.compress(RESULT)[:-9]])
def test_damaged_file_is_a_value_error(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    if name == "a.gz" and data == b"":
        assert Recording.load(tmp_path / name).stdout == b""  # an empty gzip file is valid and unpacks to no bytes
        return
    with pytest.raises(ValueError, match="damaged"):
        Recording.load(tmp_path / name)


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("name", ["stdout.ndjson.gz", "stdout.ndjson.xz"])
def test_what_unpacks_to_more_than_the_bound_is_refused(
    name: str, folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit applies to the sum of all compressed files of a folder. Uncompressed files do not count."""
    monkeypatch.setattr(_files, "MAX_UNPACKED_BYTES", 100_000)
    packed = gzip.compress if name.endswith(".gz") else lzma.compress
    lines = b"{}\n" * 20_000
    path = tmp_path if folder else tmp_path / name
    (tmp_path / name).write_bytes(packed(lines))
    if folder:
        (tmp_path / "stderr.txt").write_bytes(bytes(200_000))
    assert Recording.load(path).stdout == lines
    (tmp_path / ("stdin.ndjson.gz" if folder else name)).write_bytes(
        gzip.compress(lines) if folder else packed(lines * 2)
    )
    with pytest.raises(_files.UnpackLimitError, match=r"may unpack to 100,000 bytes"):
        Recording.load(path)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_small_file_that_unpacks_to_gigabytes_takes_bounded_memory(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"bomb{suffix}"
    once = bytes(1024 * 1024)
    path.write_bytes((gzip.compress(once) if suffix == ".gz" else lzma.compress(once)) * 3000)
    program = f"""if 1:
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        import sys
        from claude_wire_kit.commands import main
        sys.argv = ["claude-wire", "replay", {str(path)!r}]
        main()
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(b"is too large: the files of a recording may unpack to 268,435,456 bytes\n")


def test_an_xz_file_whose_header_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stdout.ndjson.xz"
    header = lzma.compress(b"{}\n", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4096}])
    assert header[12:].startswith(b"\x02\x00\x21\x01\x00")  # block header: LZMA2 with the smallest dictionary
    block = bytearray(header[12:24])
    block[4] = 36  # 1 GiB
    block[8:12] = zlib.crc32(block[:8]).to_bytes(4, "little")
    path.write_bytes(header[:12] + bytes(block) + header[24:])
    assert lzma.decompress(path.read_bytes()) == b"{}\n"
    with pytest.raises(_files.UnpackLimitError, match="takes more than"):
        Recording.load(path)


def test_streams_behind_each_other_in_one_file_are_one(tmp_path: Path) -> None:
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(b"a" * 200_000) + bytes(8) + lzma.compress(b"") + lzma.compress(b"b") + bytes(4))
    assert Recording.load(path).stdout == b"a" * 200_000 + b"b"
    path.write_bytes(path.read_bytes() + b"junk")
    with pytest.raises(ValueError, match="damaged"):
        Recording.load(path)


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_file_is_not_written_through(kind: str, tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    folder.mkdir()
    if kind == "link":
        victim.write_bytes(b"mine")
        victim.chmod(0o644)
    for place in (folder / "stdout.ndjson", folder / "claude"):
        if kind.endswith("link"):
            place.symlink_to(victim)
        elif kind == "pipe":
            os.mkfifo(place)
        else:
            place.mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        ONE_SHOT.save(folder)
    with pytest.raises(OSError, match="not a regular file"):
        Replay(ONE_SHOT).script(folder / "claude")
    if kind == "link":
        assert (victim.read_bytes(), stat.S_IMODE(victim.stat().st_mode)) == (b"mine", 0o644)
    assert victim.exists() == (kind == "link")


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="open() with O_NOFOLLOW")
def test_a_link_that_comes_between_the_look_and_the_opening_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    (tmp_path / "stdout.ndjson").symlink_to(victim)
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    with pytest.raises(OSError, match="stdout") as raised:
        ONE_SHOT.save(tmp_path)
    assert (raised.value.errno, victim.exists()) == (errno.ELOOP, False)


def test_what_is_saved_again_is_private_and_has_nothing_of_before(tmp_path: Path) -> None:
    place = tmp_path / "stdout.ndjson"
    place.write_bytes(b"x" * 10**6)
    place.chmod(0o666)
    ONE_SHOT.save(tmp_path)
    assert (place.read_bytes(), stat.S_IMODE(place.stat().st_mode)) == (ONE_SHOT.stdout, 0o600)


def test_folder_without_output_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Recording.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        Replay(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"stdout\.ndjson"):
        Recording.from_files({"stdin.ndjson": b""})


def test_a_folder_of_recordings_names_one_of_them(tmp_path: Path) -> None:
    for name in ("second", "first"):
        (tmp_path / name).mkdir()
        ONE_SHOT.save(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"no stdout\.ndjson, but there is one in 'first'"):
        Recording.load(tmp_path)


def test_file_that_is_not_what_it_should_be_is_a_value_error() -> None:
    for name in ("order.jsonl", "stdout.reads.jsonl"):
        for data in (b"[1,\n", b"1\n", b"\n1\n", b"[1]", b'["a", "b"]\n', b'[1, "in", "b"]\n', b"[1, 2, 3, 4]\n"):
            loaded = Recording.from_files({"stdout.ndjson": b"", name: data})
            with pytest.raises(ValueError, match=name):
                _ = loaded.steps
            if name == "stdout.reads.jsonl":
                with pytest.raises(ValueError, match=name):
                    _ = loaded.reads
    with pytest.raises(ValueError, match="exit"):
        _ = Recording.from_files({"stdout.ndjson": b"", "exit.json": b"{"}).exit_code
    assert Recording.from_files({"stdout.ndjson": b"", "cmd.json": b'{"argv": 5}'}).argv == ()


@pytest.mark.parametrize("name", ["order.jsonl", "stdout.reads.jsonl"])
def test_a_last_row_that_was_cut_off_is_left_out(name: str) -> None:
    row = b'[1.5, "out", 9]' if name == "order.jsonl" else b"[1.5, 10]"
    stdout = b'{"a":"b"}\n' * 3
    for end in range(len(row) + 2):
        files = {"stdout.ndjson": stdout, name: row + b"\n" + (row + b"\n")[:end]}
        assert b"".join(step.data for step in Recording.from_files(files).steps) == stdout
        if name == "stdout.reads.jsonl":
            first, rest = stdout[:10], stdout[10:]
            reads = (first, rest) if end < len(row) else (first, rest[:10], rest[10:])
            assert Recording.from_files(files).reads == reads


def test_nothing_of_a_recording_is_in_its_repr() -> None:
    assert "recorded" not in repr(ASKING)
