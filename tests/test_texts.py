"""Foreign text is short and printable wherever it is shown; files are read within bounds."""

from __future__ import annotations

import ast
import json
import os
import sys
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any
from xml.dom import minidom

import numpy as np
import pytest

from oxx_env import cards, insight, notation, records, render
from oxx_env.commands import _cli
from oxx_env.game.table import Table
from oxx_env.lib import texts
from oxx_env.lib.files import open_regular, read_arrays, read_json, read_text

ROOT = Path(__file__).resolve().parents[1]
HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202eabc\u2066\x9b2J\x7f\r\b"


def unprintable(text: str) -> list[str]:
    return [c for c in text if not (c.isprintable() or c == "\n")]


# ---- Printable


def test_what_a_terminal_obeys_or_hides_is_written_as_json_writes_it() -> None:
    shown = texts.printable(HOSTILE + "\ud800 ü 藍 😀 tab\there\n")
    assert not unprintable(shown.replace("\t", ""))
    assert shown.endswith("\\ud800 ü 藍 😀 tab\there\n")
    inside = json.loads(f'"{texts.printable(HOSTILE)}"')
    assert inside == HOSTILE


def test_a_message_is_a_page_at_most_and_a_value_a_few_letters() -> None:
    assert len(texts.message("x" * 2_000_000)) == texts.MOST_OF_A_MESSAGE
    assert texts.short("x" * 2_000_000) == '"' + "x" * 38 + "…"
    assert texts.short(10**50) == "a huge number"


def test_only_our_own_colors_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    with texts.printable_output():
        print("\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2J")
        print("\r3 of 4", file=texts.unfiltered(sys.stdout))
    told = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert told == "\x1b[31mred\x1b[0m \\u001b]0;title\\u0007\\u001b[2J\n\r3 of 4\n"


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files with hostile names and contents."""
    monkeypatch.chdir(tmp_path)
    name = HOSTILE
    deck = f"{name}.csv"
    Path(deck).write_text(cards.to_csv(cards.load_deck("balanced")))
    Path(f"bad{name}.csv").write_text(f"number,{name}\n1,2\n")
    table = Table(players=2, deck="balanced")
    table.deal(seed=1)
    view = table.view(0).to_dict()
    view["deck"]["name"] = name
    Path("view.json").write_text(json.dumps(view))
    Path("wrong.json").write_text(json.dumps({**view, "rules": name}))
    while not table.over:
        seat = table.deciders()[0]
        table.act(seat, table.legal(seat)[0])
    record = records.records_of(table, "m")[0]
    record["match"]["id"] = record["deck"]["name"] = name
    record["names"] = [name, name]
    Path(f"{name}.jsonl").write_text(records.to_line(record) + "\n")
    record["scores"] = [name, 1]
    Path(f"bad{name}.jsonl").write_text(records.to_line(record) + "\n")
    return {"deck": deck, "bad": f"bad{name}.csv", "name": name}


def commands(files: dict[str, str]) -> list[list[str]]:
    name, deck = files["name"], files["deck"]
    return [
        [name],
        ["arena", name],
        ["arena", "random", name, "--games", "2"],
        ["arena", "random", "random", "--players", "2", "--games", "2", "--deck", deck],
        ["arena", "random", "--rules", name],
        ["arena", "random", "random", f"--{name}"],
        ["advise", name],
        ["advise", f"4p rows {name} hand 1 2"],
        ["advise", "view.json", "--bot", "greedy"],
        ["advise", "wrong.json"],
        ["advise", "view.json", "--bot", f"policy:{name}"],
        ["bench", f"--{name}"],
        ["compare", "random", name, "--games", "2"],
        ["deck", "check", deck],
        ["deck", "check", files["bad"]],
        ["deck", "check", name + "nonesuch"],
        ["league", "random", name, "--games", "2"],
        ["play", "--deck", deck, "--seed", "1"],
        ["play", "--bots", name],
        ["play", "--save", f"no/{name}"],
        ["record", "--bots", "random", "--deck", deck, "--players", "2"],
        ["record", "--bots", name],
        ["replay", f"{name}.jsonl"],
        ["replay", f"bad{name}.jsonl"],
        ["replay", name],
        ["replay", f"{name}.jsonl", "--svg", f"{name}.svg"],
        ["serve", "--host", name],
        ["serve", "--folder", f"{deck}/{name}"],
        ["track", "--deck", name, "new.json"],
        ["track", f"bad{name}.jsonl"],
    ]


def test_no_command_prints_a_control_character(
    hostile: dict[str, str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    for argv in commands(hostile):
        monkeypatch.setattr(sys, "stdin", StringIO("?\nq\n"))
        _cli.main(argv)
        out, err = capsys.readouterr()
        assert not unprintable(out), (argv, out)
        assert not unprintable(err), (argv, err)
        assert "Traceback" not in err and "fault of oxx" not in err, (argv, err)
        assert len(err) < 6000, argv
        seen.add(" ".join(argv[: 1 + (argv[0] == "deck")]))
    assert seen >= set(_cli.command_names())


# ---- Bounded


def test_every_file_is_read_through_one_module() -> None:
    """`open` to read, `read_text`, `read_bytes`, `np.load` and the like stand in `files` alone."""
    own = {"files.py", "jit.py"}  # that one reads the package's own sources
    harmless = {"webbrowser.open", "os.open"}  # the latter of os.devnull
    found = []
    for path in [*sorted(ROOT.glob("oxx_env/**/*.py")), *ROOT.glob("training/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if path.name in own or not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            last = called.rpartition(".")[2]
            modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
            writes = any(isinstance(m, str) and set(m) & set("awx") for m in modes)
            if last in ("read_text", "read_bytes") and called != "read_text":
                found.append((path.name, called))
            if called.endswith("open") and not writes and called not in harmless:
                found.append((path.name, called))
            if called in ("np.load", "numpy.load", "json.load", "np.fromfile", "np.loadtxt"):
                found.append((path.name, called))
    assert found == [
        ("_benchmark.py", "Path('/proc/cpuinfo').read_text"),
        ("extras.py", "distribution.read_text"),  # what pip has noted about this package
    ]


def test_a_pipe_is_refused_at_once_by_every_reader(tmp_path: Path, capsys: Any) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="is no file"), open_regular(pipe):
        pass
    for argv in (
        ["deck", "check", pipe],
        ["replay", pipe],
        ["advise", pipe],
        ["track", pipe],
        ["arena", "random", "random", "--deck", pipe],
    ):
        assert _cli.main([str(word) for word in argv]) == 2
        assert "is no file" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is no file"):
        os.mkfifo(tmp_path / "state.npz")
        insight.learning_curve(tmp_path)


def test_a_text_is_read_to_its_bound_and_names_a_byte_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfabc")
    assert read_text(path) == "abc"
    with pytest.raises(ValueError, match="larger than 5 bytes"):
        read_text(path, 5)
    path.write_bytes(b"ab\xff")
    with pytest.raises(ValueError, match="byte 3 is not UTF-8"):
        read_text(path)
    path.write_text("[" * 200_000)
    with pytest.raises(ValueError, match="nested too deep"):
        read_json(path)


def test_arrays_come_back_as_they_were_and_no_more_than_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    kept = {
        "a": np.arange(12, dtype=np.float32).reshape(3, 4),
        "f": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "text": np.array("hello"),
        "empty": np.zeros((0, 3)),
        "one": np.array(2.5),
        "records": np.ones(2, [("x", "u1"), ("y", "f8", (2,))]),
    }
    np.savez(path, **kept)
    back = read_arrays(path)
    assert back.keys() == kept.keys()
    for name, array in kept.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype
        assert back[name].flags.writeable
    assert read_arrays(path, only=("one",)).keys() == {"one"}
    with pytest.raises(ValueError, match="the arrays are too large"):
        read_arrays(path, most=300)
    np.savez(path, a=np.array([{}], object))
    with pytest.raises(ValueError, match="holds objects"):
        read_arrays(path)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match="no file of arrays"):
        read_arrays(path)


def test_a_packed_learning_curve_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "state.npz", evaluations=np.zeros(1 << 24, np.uint8))
    assert (tmp_path / "state.npz").stat().st_size < 100_000
    with pytest.raises(ValueError, match="no learning curve: evaluations is compressed"):
        insight.learning_curve(tmp_path)
    np.savez(tmp_path / "state.npz", evaluations=np.array("[" * 100_000))
    with pytest.raises(ValueError, match="no learning curve"):
        insight.learning_curve(tmp_path)


def test_a_long_wrong_position_is_shown_around_its_place(tmp_path: Path, capsys: Any) -> None:
    text = "4p rows 12 7 31 20 46 hand " + "3 " * 50_000
    with pytest.raises(notation.PositionError) as error:
        notation.read_position(text)
    assert len(str(error.value)) < 2000
    (tmp_path / "a.txt").write_text(text)
    assert _cli.main(["advise", str(tmp_path / "a.txt")]) == 2
    told = capsys.readouterr().err
    assert len(told) < 2500 and "^" in told
    (tmp_path / "a.txt").write_text("{" + "x" * 1_000_000)
    assert _cli.main(["advise", str(tmp_path / "a.txt")]) == 2
    assert len(capsys.readouterr().err) < 2500


def test_a_picture_of_a_table_with_hostile_names_is_well_formed() -> None:
    table = Table(players=2)
    table.deal(seed=1)
    drawn = render.svg(table.view(0), names=[HOSTILE + "<&", "\x00b"])
    assert minidom.parseString(drawn).documentElement.tagName == "svg"
    assert not unprintable(drawn)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("(" * 4000, "a header that cannot be read"),
        ("-" * 9000 + "1", "a header that cannot be read"),
        ("{1: 2, 'a': 3}", "a header that cannot be read"),
        ("{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000,)}", "holds nothing"),
        ("{'descr': [], 'fortran_order': False, 'shape': (1000000000000,)}", "holds nothing"),
        ("{'descr': '|i1', 'fortran_order': False, 'shape': (True,)}", "no shape"),
    ],
)
def test_an_array_with_a_spoiled_header_is_refused(tmp_path: Path, header: str, words: str) -> None:
    text = header.encode()
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", data + b"\x00" * ("True" in header))
    with pytest.raises(ValueError, match=words):
        read_arrays(tmp_path / "a.npz")
