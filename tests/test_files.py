"""Files appear whole or not at all, and nothing but a file is ever replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from oxx_env.lib.files import open_atomic, read_bounded


def write(path: Path, text: str) -> None:
    with open_atomic(path) as file:
        file.write(text)


def test_a_file_is_replaced_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with open_atomic(path) as file:
        file.write("new\n")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_bytes() == b"new\n" and os.listdir(tmp_path) == ["a"]


def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), open_atomic(path) as file:
        file.write("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    write(tmp_path / "a", "")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_pipe_or_device_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, "through")
    assert os.read(reader, 100) == b"through" and stat.S_ISFIFO(pipe.lstat().st_mode)
    os.close(reader)


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "new"


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    with open_atomic(tmp_path / "a", "wb") as file:
        file.write(b"\x00\r\n")
    assert (tmp_path / "a").read_bytes() == b"\x00\r\n"


def test_the_error_names_the_path_that_was_asked_for(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "a", tmp_path):
        with pytest.raises(OSError) as error:
            write(path, "")
        assert error.value.filename in (str(path), path)


def test_writing_a_file_leaves_the_umask_of_other_threads_alone(tmp_path: Path) -> None:
    def refuse(mask: int) -> int:
        raise AssertionError("the umask belongs to all threads")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "umask", refuse)
        write(tmp_path / "a", "")
    before = os.umask(0o077)
    try:
        write(tmp_path / "b", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null"])
def test_a_device_without_end_is_refused_unread(device: str) -> None:
    with pytest.raises(ValueError, match="is no file"):
        read_bounded(device)


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bounded(tmp_path / "a", 5) == b"12345"
    with pytest.raises(ValueError, match="larger than 4 bytes"):
        read_bounded(tmp_path / "a", 4)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is no file"):
        read_bounded(tmp_path / "pipe")
