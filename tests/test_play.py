"""`oxx play`: a game in the terminal, at a pipe and at a pseudo-terminal."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from oxx_env import advice, records
from oxx_env.commands import _cli, play
from oxx_env.game.table import Table
from oxx_env.notation import wording


@pytest.fixture
def oxx_play(capsys, monkeypatch):
    """Run `oxx play` in this process; `answer(prompt)` types a line, None ends the input."""

    def run(answer, *argv):
        asked = []

        def ask(prompt=""):
            print(prompt)
            asked.append(prompt)
            typed = answer(prompt) if callable(answer) else next(answer, None)
            if typed is None:
                raise EOFError
            if typed is KeyboardInterrupt:
                raise KeyboardInterrupt
            return typed

        monkeypatch.setattr("builtins.input", ask)
        code = _cli.main(["play", *map(str, argv)])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err, asked

    return run


def first_choice(prompt):
    """Type the first of the choices in the prompt's brackets."""
    return re.search(r"\((\d+)", prompt)[1]


SETTINGS = [(2, "base"), (4, "positive"), (10, "color"), (3, "color+positive")]


@pytest.mark.parametrize(("players", "rules"), SETTINGS)
def test_a_game_is_played_to_its_end_and_saved_as_a_valid_record(
    oxx_play, tmp_path, players, rules
):
    file = tmp_path / "games.jsonl"
    argv = ["--players", players, "--rules", rules, "--seed", 5, "--save", file]
    code, out, err, asked = oxx_play(first_choice, *argv)
    assert (code, err) == (0, "")
    assert asked
    (record,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (record["players"], record["rules"], record["seed"]) == (players, rules, 5)
    records.replay(record)
    assert "most points win" in out if "positive" in rules else "fewest points win" in out
    for seat, points in enumerate(record["scores"]):
        assert re.search(rf"{'you' if seat == 0 else f'greedy {seat}'} +{points}\n", out)
    assert ("You won" in out or "share the victory" in out) == (0 in record["winners"])
    assert "1 finished game saved" in out


def test_everything_that_was_played_and_taken_is_told(oxx_play, tmp_path):
    file = tmp_path / "games.jsonl"
    _, out, _, _ = oxx_play(first_choice, "--seed", 2, "--save", file)
    record = json.loads(file.read_text())
    for number, told in enumerate(record["rounds"], start=1):
        assert f"Round {number} " in out
        for seat, card, row, took in told["placements"]:
            name = "you" if seat == 0 else f"greedy {seat}"
            assert re.search(rf"{name}: {card} ", out)
            if took:
                taken = ", ".join(map(str, took))
                assert re.search(rf"{card} \({name}\) .*: takes row {row} \({taken}\), \d", out)
            else:
                assert f"{card} ({name}) goes to row {row}" in out


def test_a_match_adds_up_its_games(oxx_play, tmp_path):
    file = tmp_path / "games.jsonl"
    argv = ["--players", 9, "--match", 2, "--seed", 1, "--save", file]
    _, out, _, _ = oxx_play(first_choice, *argv)
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["match"]["game"] for record in told] == [1, 2]
    assert "Game 1 of 2 is over" in out
    total = sum(record["scores"][0] for record in told)
    assert re.search(rf"you +{total}\n", out)


def test_saving_adds_to_the_file(oxx_play, tmp_path):
    file = tmp_path / "games.jsonl"
    for seed in (1, 2):
        oxx_play(first_choice, "--players", 9, "--seed", seed, "--save", file)
    assert [json.loads(line)["seed"] for line in file.read_text().splitlines()] == [1, 2]


@pytest.mark.parametrize("stop", ["q", "Q", "quit", None, KeyboardInterrupt])
@pytest.mark.parametrize("after", [0, 3])
def test_quitting_at_any_prompt_is_clean(oxx_play, tmp_path, stop, after):
    file = tmp_path / "games.jsonl"
    count = iter(range(100))
    answer = lambda prompt: first_choice(prompt) if next(count) < after else stop  # noqa: E731
    code, out, err, asked = oxx_play(answer, "--save", file)
    assert (code, err, len(asked)) == (0, "", after + 1)
    assert "Good-bye" in out
    assert "0 finished games saved" in out


def test_wrong_input_is_explained_and_asked_again(oxx_play):
    lines = iter(["", "x", "-1", "1.5", "²", "999", "9" * 400, "?", "r", "t", "u"])
    code, out, _, asked = oxx_play(lines, "--seed", 3)
    assert code == 0
    assert len(set(asked)) == 1
    assert len(asked) == 12
    for says in (
        "Nothing was typed: type one of your cards (66, 71, 82, 88)",
        "'x' is not understood",
        "'-1' is not understood",
        "'1.5' is not understood",
        "'²' is not understood",
        "999 is not in your hand; your cards are 66, 71, 82, 88",
        "Type the number of a card",
        "Fewest points win",
        "There is nothing to take back yet",
    ):
        assert says in out


def test_a_row_that_is_not_legal_is_refused_with_the_reason(oxx_play):
    tried = []

    def answer(prompt):
        rows = re.search(r"Which row for (\d+)\? \((.*)\)", prompt)
        if not rows:
            return first_choice(prompt)
        illegal = [row for row in range(5) if str(row) not in rows[2].split(", ")]
        if len(tried) == 2 or not illegal:
            return rows[2][0] if len(tried) < 2 else "q"
        tried.append((rows[1], illegal[0]))
        return "5" if len(tried) == 1 else str(illegal[0])

    _, out, _, _ = oxx_play(answer, "--seed", 3)
    assert "There is no row 5; rows are 0 to 4" in out
    card, row = tried[1]
    assert f"Row {row} does not end in a color of {card}" in out


def test_undo_goes_back_to_the_last_own_decision_and_the_game_goes_on(oxx_play, tmp_path):
    file, plain = tmp_path / "undone.jsonl", tmp_path / "plain.jsonl"
    asked = []

    def answer(prompt):
        asked.append(prompt)
        if len(asked) in (4, 5, 9):
            return "u"
        return first_choice(prompt)

    code, out, _, _ = oxx_play(answer, "--seed", 4, "--save", file)
    assert code == 0
    assert out.count("taken back") == 3
    assert asked[4] == asked[2]
    assert asked[5] == asked[1]
    oxx_play(first_choice, "--seed", 4, "--save", plain)
    assert file.read_text() == plain.read_text()  # undone and done again: the same game


def test_hint_names_every_legal_action_and_one_best_choice(oxx_play):
    _, out, _, _ = oxx_play(iter(["h"]), "--seed", 3, "--hint", "mc:20")
    for number in (66, 71, 82, 88):
        assert re.search(rf"card {number} +(0|[+-]\d+\.\d ± \d+\.\d) +-?\d+\.\d +\d+ %", out)
    assert out.count("best choice") == 1


def test_plain_mode_has_no_layout(oxx_play):
    lines = iter(["66", "h", "?"])
    _, out, _, _ = oxx_play(lines, "--seed", 3, "--plain", "--hint", "mc:20")
    assert not set(out) & set("\x1b│─→←·>[]")
    assert "Row 0: 95 with 1 black, 1 white." in out
    told = r"difference 0, expected points \d+\.\d, win share \d+ %, best choice"
    assert re.search(told, out)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--players", 1], "--players is from 2 to 10, not 1"),
        (["--players", 11], "--players is from 2 to 10, not 11"),
        (["--rules", "none"], "unknown rule set 'none'"),
        (["--deck", "none"], "no deck of this name"),
        (["--bots", "nobody"], "unknown bot 'nobody'"),
        (["--bots", "greedy,random,greedy,random"], "--bots names 4 bots for 3 seats"),
        (["--hint", "nobody"], "unknown bot 'nobody'"),
        (["--hint", "cheat"], "--hint cheat: sees hidden cards"),
        (["--seat", 4], "--seat 4: seats are 0 to 3"),
        (["--match", 0], "--match is from 1 to 1000, not 0"),
        (["--save", "/no/such/folder/x"], "/no/such/folder/x"),
    ],
)
def test_a_wrong_option_is_refused_before_the_first_prompt(oxx_play, argv, says):
    code, _, err, asked = oxx_play(iter([]), *argv)
    assert (code, asked) == (2, [])
    assert says in err


def test_bots_see_only_their_view_and_never_the_pick_of_the_person():
    seen = []

    class Spy:
        needs_state = False

        def act(self, view, rng):
            seen.append(view)
            return view.legal[0]

    table = Table(players=2)
    table.deal(seed=1)
    game = play.Game(table, {1: Spy()}, ["you", "spy"], 0, 1, "greedy", None)
    table.act(0, 2)
    assert int(table.game["picks"][0])
    game._let_bots_act()
    assert [int(n) for n in seen[0].game["picks"]] == [0] * 10
    assert seen[0].game["hands"][0].tolist() == [0] * 4


def test_rules_text_follows_the_rule_set():
    assert "Fewest points win" in wording.rules_text("base")
    assert "sixth card" in wording.rules_text("base")
    assert "sixth card" not in wording.rules_text("color")
    assert "under its player's draw pile" in wording.rules_text("positive")
    assert "Most points win" in wording.rules_text("color+positive")


# --- as a program ---


def test_piped_input_plays_and_its_end_quits():
    command = [sys.executable, "-m", "oxx_env", "play", "--seed", "3", "--players", "2"]
    done = subprocess.run(command, input="1\n", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 is not in your hand" in done.stdout
    assert "Good-bye" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
@pytest.mark.parametrize("stop", [b"q\n", b"\x03", b"\x04"], ids=["q", "Ctrl-C", "Ctrl-D"])
def test_at_a_terminal_heads_are_colored_and_the_game_quits_cleanly(stop):
    import pty

    command = ["oxx", "play", "--seed", "3", "--players", "2"]
    child, master = pty.fork()
    if child == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ["TERM"] = "xterm-256color"
        # Tests started in the background may have been told to ignore it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-m", "oxx_env", *command[1:]])
    shown, typed, quiet = b"", 0, 0.0
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if select.select([master], [], [], 0.25)[0]:
            quiet = 0.0
            try:
                shown += os.read(master, 4096)
            except OSError:
                break
            continue
        # Nothing more comes: at a prompt, the game now waits for an answer.
        quiet += 0.25
        cards = re.findall(rb"Which (?:card|row)[^?]*\? \((\d+)", shown)
        if typed == 0 and cards:
            os.write(master, cards[-1] + b"\n")
            typed = len(shown)
        elif typed and len(shown) > typed + 80 and b"Good-bye" not in shown and quiet in (0.5, 5.0):
            os.write(master, stop)  # once more, as a person would, if it was not heard
    else:
        os.kill(child, signal.SIGKILL)
    os.close(master)
    _, status = os.waitpid(child, 0)
    text = shown.decode()
    assert typed
    assert os.waitstatus_to_exitcode(status) == 0
    assert "\x1b[1;97;4" in text
    assert "Good-bye" in text
    assert "Traceback" not in text


# --- advice ---


def test_a_bot_without_an_evaluation_is_asked_for_its_choice_only():
    import numpy as np

    from oxx_env import bots

    table = Table(players=2)
    table.deal(seed=1)
    view = table.view(0)
    options = advice.advise(view, "greedy", np.random.default_rng(0))
    (choice,) = [option.action for option in options if option.choice]
    game = table.games.tobytes()
    assert [option.card for option in options] == view.hand
    assert choice == bots.make("greedy").act(view, np.random.default_rng(0))
    assert all(0 <= option.win_share <= 1 and option.points >= 0 for option in options)
    assert table.games.tobytes() == game
    with pytest.raises(ValueError, match="nothing to decide"):
        table.act(0, 0)
        advice.advise(table.view(0), "greedy", np.random.default_rng(0))
