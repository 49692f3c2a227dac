"""The command `oxx`: its manners, which all commands share, and `oxx deck check`."""

import json
import os
import subprocess
import sys

import pytest

from oxx_env import cards
from oxx_env.commands import OK, Command, Report, UserError, _cli

GOOD = cards.to_csv(cards.load_deck("balanced"))


@pytest.fixture
def oxx(capsys):
    """Run `oxx` in this process; gives exit code, stdout and stderr."""

    def oxx(*argv):
        code = _cli.main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return oxx


@pytest.fixture
def deck(tmp_path):
    def deck(content):
        path = tmp_path / "deck.csv"
        path.write_text(content)
        return path

    return deck


# --------------------------------------------------------------------------- oxx deck check


@pytest.mark.parametrize("name", cards.DECK_NAMES)
def test_a_good_deck_is_described(oxx, name):
    code, out, err = oxx("deck", "check", name)
    assert (code, err) == (0, "")
    heads = cards.describe(cards.load_deck(name))["heads"]
    assert f"heads   {heads} in all" in out
    for word in (*cards.COLORS, "cards show one color", "several", "110"):
        assert word in out


def test_json_is_one_object_on_stdout(oxx, deck):
    code, out, err = oxx("deck", "check", deck(GOOD), "--json")
    report = json.loads(out)
    assert (code, err, report["ok"], report["faults"]) == (0, "", True, [])
    assert report["deck"] == cards.describe(cards.load_deck("balanced"))

    code, out, _ = oxx("deck", "check", deck(GOOD.replace("\n7,", "\n7,-1", 1)), "--json")
    report = json.loads(out)
    assert (code, report["ok"], report["deck"]) == (1, False, None)
    assert [fault["line"] for fault in report["faults"]] == [8]


def test_a_deck_with_faults_exits_1_and_names_them_by_line(oxx, deck):
    path = deck(GOOD.replace("\n9,", "\n8,", 1))
    code, out, _ = oxx("deck", "check", path)
    assert code == 1
    assert f"{path}:10: number 8 appears twice, first on line 9" in out
    assert f"{path}:11: number 9 is missing" in out
    assert "2 faults" in out


@pytest.mark.parametrize("content", ["", "hello\n", "\0\n"], ids=["empty", "prose", "binary"])
def test_a_file_without_a_deck_exits_2(oxx, deck, content):
    path = deck(content)
    code, out, err = oxx("deck", "check", path)
    assert (code, out) == (2, "")
    assert f"{path}:1: " in err
    code, out, err = oxx("deck", "check", path, "--json")
    assert (code, json.loads(out)["ok"]) == (2, False)


def test_a_missing_file_and_a_folder_exit_2_with_one_line(oxx, tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        code, out, err = oxx("deck", "check", path)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert str(path) in err


# --------------------------------------------------------------------------- manners


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["help"]])
def test_help_lists_every_command_with_its_example(oxx, argv):
    code, out, err = oxx(*argv)
    assert (code, err) == (0, "")
    assert _cli.command_names()
    for name in _cli.command_names():
        assert f"\n  {name} " in out
        assert f"$ {_cli.load_command(name).example}" in out


@pytest.mark.parametrize("name", _cli.command_names())
def test_every_command_keeps_the_contract(oxx, name):
    kind = _cli.load_command(name)
    assert issubclass(kind, Command)
    assert issubclass(kind, Report) or name in ("record", "play", "serve")
    assert kind.example.startswith(f"oxx {name}")
    code, out, err = oxx(*name.split(), "--help")
    assert (code, err) == (0, "")
    for word in ("--seed", *(["--json"] if issubclass(kind, Report) else []), kind.example):
        assert word in out
    if kind.names_bots:
        assert "mc:BUDGET" in out and "horizon=…" in out and "policy:PATH" in out
    code, out, err = oxx(*name.split(), "--no-such-option")
    assert (code, out) == (2, "")
    assert "--no-such-option" in err


def test_help_is_quick_and_loads_no_heavy_module():
    script = (
        "import sys, oxx_env.commands._cli; code = oxx_env.commands._cli.main(['--help'])\n"
        "heavy = {'numba', 'torch', 'stable_baselines3', 'scipy', 'matplotlib'}\n"
        "sys.exit(f'loaded {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "usage: oxx COMMAND"),
        (["deck"], "after 'deck' comes one of: check"),
        (["deck", "chek", "x"], "after 'deck' comes one of: check"),
        (["dek", "check", "x"], "unknown command 'dek'; did you mean 'deck'?"),
        (["dek", "--help"], "unknown command 'dek'"),
        (["--seed", "1", "deck", "check", "x"], "unknown option '--seed'; a command comes first"),
        (["deck", "check"], "FILE"),
        (["deck", "check", "balanced", "more"], "more"),
        (["deck", "check", "--jsn", "balanced"], "unknown option '--jsn'; did you mean --json?"),
        (["deck", "check", "balanced", "--js"], "unknown option '--js'"),  # no abbreviations
        (["deck", "check", "balanced", "--seed", "x"], "--seed"),
        (["deck", "check", "balanced", "--seed", "-1"], "--seed is at least 0, not -1"),
        (["deck", "check", "balanced", "--seed"], "--seed"),
    ],
)
def test_a_mistake_exits_2_with_a_message_on_stderr(oxx, argv, says):
    code, out, err = oxx(*argv)
    assert (code, out) == (2, "")
    assert says in err


def test_version(oxx):
    code, out, _ = oxx("--version")
    assert (code, out) == (0, "oxx 0.1.0\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UserError("no such rule"), 2, "oxx: no such rule\n"),
        (ValueError("players 11: should be 2 to 10"), 2, "oxx: players 11: should be 2 to 10\n"),
        (FileNotFoundError(2, "No such file", "a.csv"), 2, "oxx: a.csv: No such file\n"),
        (ModuleNotFoundError("", name="torch"), 2, "oxx: this needs torch: "),
        (KeyError("x"), 70, "oxx: KeyError: 'x' (a fault of oxx"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_end_in_one_message_and_an_exit_code(oxx, monkeypatch, error, code, message):
    def fail(self):
        raise error

    monkeypatch.setattr(_cli.load_command("deck check"), "run", fail)
    found, out, err = oxx("deck", "check", "x")
    assert (found, out) == (code, "")
    assert err.startswith(message)
    assert err.count("\n") <= 1


@pytest.mark.skipif(os.name != "posix", reason="pipes close otherwise elsewhere")
def test_a_closed_pipe_ends_quietly():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "oxx_env", "deck", "check", "balanced"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_reports_take_numpy_values(capsys):
    import numpy as np

    class Run(Report):
        def run(self):
            self.report({"array": np.arange(2), "scalar": np.float32(0.5)}, "text")
            return OK

    Run(json=True).run()
    assert json.loads(capsys.readouterr().out) == {"array": [0, 1], "scalar": 0.5}
