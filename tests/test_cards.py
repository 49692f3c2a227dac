"""The deck: loading, checking, describing, shuffling, saving; the shipped reconstructions."""

import functools
import os
import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxx_env import cards
from oxx_env.game.cards import BARONS, COLORS, DECK_NAMES, NUMBERS, DeckError, card_type, load_deck
from oxx_env.game.decks import generate

HEADER = "number,blue,yellow,green,red,black,white"
GOOD = cards.to_csv(load_deck("balanced"))  # line n + 1 holds number n
ORDINARY = [number - 1 for number in range(1, NUMBERS + 1) if number not in BARONS]


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def write(content):
        path = tmp_path / "deck.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def with_line(at, text):
    """The good deck with one line replaced, or removed if `text` is None."""
    lines = GOOD.splitlines()
    lines[at - 1 : at] = [] if text is None else [text]
    return "\n".join(lines) + "\n"


def line_of(number):
    return GOOD.splitlines()[number]


# --------------------------------------------------------------------------- shipped decks


@pytest.mark.parametrize("name", DECK_NAMES)
def test_the_script_writes_the_shipped_decks_byte_for_byte(name, tmp_path):
    generate.main(tmp_path)
    shipped = cards._FOLDER / f"{name}.csv"
    assert (tmp_path / f"{name}.csv").read_bytes() == shipped.read_bytes()


@pytest.mark.parametrize(
    ("name", "types", "by_heads", "heads"),
    [
        ("three-color", {"a": 6, "aa": 6, "ab": 30, "aaa": 6, "abc": 60}, (6, 36, 66), 288),
        ("balanced", {"a": 24, "aa": 12, "ab": 30, "aaa": 12, "abc": 30}, (24, 42, 42), 246),
        (
            "two-color",
            {"a": 18, "aa": 12, "ab": 18, "aaa": 6, "aab": 30, "abc": 24},
            (18, 30, 60),
            270,
        ),
    ],
)
def test_shipped_decks_have_the_figures_of_their_model(name, types, by_heads, heads):
    figures = cards.describe(load_deck(name))
    assert figures["types"] == types
    assert figures["cards_by_heads"] == dict(zip("1236", (*by_heads, 2), strict=True))
    assert figures["heads"] == heads
    assert set(figures["heads_by_color"].values()) == {heads // 6}
    assert figures["mono"] + figures["mixed"] == NUMBERS


@pytest.mark.parametrize("name", DECK_NAMES)
def test_every_color_has_the_same_count_of_each_type(name):
    deck = load_deck(name)[ORDINARY]
    types = np.array([card_type(card) for card in deck])
    for kind in set(types):
        by_color = np.sort(deck[types == kind], axis=0)  # what each color shows on these cards
        assert (by_color == by_color[:, :1]).all(), kind


@pytest.mark.parametrize("name", DECK_NAMES)
def test_low_middle_and_high_numbers_hold_the_same_types_and_even_colors(name):
    parts = load_deck(name)[ORDINARY].reshape(3, 36, 6)
    types = [sorted(card_type(card) for card in part) for part in parts]
    assert types[0] == types[1] == types[2]
    assert np.ptp(parts.sum(axis=1)) <= 1


def test_the_design_of_triples_meets_every_pair_of_colors_twice():
    pairs = [pair for triple in generate.DESIGN for pair in combinations(triple, 2)]
    assert {pairs.count(pair) for pair in combinations(range(6), 2)} == {2}


# --------------------------------------------------------------------------- loading


def test_a_deck_is_a_fresh_uint8_array_of_heads_by_card_and_color():
    deck = load_deck("balanced")
    assert deck.shape == (NUMBERS, len(COLORS))
    assert deck.dtype == np.uint8
    deck[:] = 9
    assert load_deck("balanced").max() < 9


def test_a_name_a_path_an_array_and_lists_mean_the_same_deck(write):
    path, array = write(GOOD), load_deck("balanced")
    for spec in (path, str(path), array, array.astype(np.int64), array.tolist()):
        assert np.array_equal(load_deck(spec), array)


def test_a_function_gives_each_game_its_own_deck():
    spec = functools.partial(cards.random_deck, "balanced")
    first, again = (cards.resolve(spec, np.random.default_rng(5)) for _ in range(2))
    other = cards.resolve(spec, np.random.default_rng(6))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(cards.resolve(lambda rng: "two-color", None), load_deck("two-color"))
    with pytest.raises(TypeError, match="resolve"):
        load_deck(spec)


def test_deck_names_are_shipped_name_file_name_or_custom(tmp_path):
    assert cards.deck_name("two-color") == "two-color"
    assert cards.deck_name(str(tmp_path / "mine.csv")) == "mine.csv"
    assert cards.deck_name(tmp_path / "mine.csv") == "mine.csv"
    assert cards.deck_name(load_deck("balanced")) == cards.deck_name(lambda rng: 0) == "custom"


def test_saving_and_loading_changes_nothing(tmp_path):
    deck = cards.random_deck("two-color", np.random.default_rng(1))
    cards.save_deck(deck, tmp_path / "deck.csv")
    assert np.array_equal(load_deck(tmp_path / "deck.csv"), deck)
    with pytest.raises(DeckError):
        cards.save_deck(np.zeros((110, 6), int), tmp_path / "bad.csv")
    assert not (tmp_path / "bad.csv").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),  # a byte order mark
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.rstrip("\n"),
        GOOD + "\n  \n",
        GOOD.replace(",", " , "),
        "\n".join(",".join(f'"{x}"' for x in row.split(",")) for row in GOOD.split("\n")[:-1]),
        "\n".join([HEADER, *reversed(GOOD.splitlines()[1:])]),
    ],
    ids=["bom", "crlf", "cr", "no last newline", "blank lines", "spaces", "quotes", "any order"],
)
def test_harmless_spellings_of_a_deck_are_read(content, write):
    assert cards.check_deck(write(content)) == []
    assert np.array_equal(load_deck(write(content)), load_deck("balanced"))


# --------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (with_line(8, None), 8, "number 7 is missing; each of 1 to 110 should stand once"),
        (with_line(111, None), 111, "number 110 is missing"),
        (GOOD + line_of(7) + "\n", 112, "number 7 appears twice, first on line 8"),
        (GOOD + "111,1,0,0,0,0,0\n", 112, "number '111' is out of range; should be 1 to 110"),
        (GOOD + "0,1,0,0,0,0,0\n", 112, "number '0' is out of range"),
        (GOOD + "-3,1,0,0,0,0,0\n", 112, "number '-3' is out of range"),
        (GOOD + "7.0,1,0,0,0,0,0\n", 112, "number '7.0' is not an integer"),
        (GOOD + "seven,1,0,0,0,0,0\n", 112, "number 'seven' is not an integer"),
        (GOOD + ",1,0,0,0,0,0\n", 112, "number '' is not an integer"),
        (with_line(8, "7,-1,0,0,1,0,0"), 8, "blue '-1' is negative; should be 0 to 7"),
        (with_line(8, "7,0,0.5,0,1,0,0"), 8, "yellow '0.5' is not an integer; should be 0 to 7"),
        (with_line(8, "7,0,0,x,1,0,0"), 8, "green 'x' is not an integer"),
        (with_line(8, "7,,,,,,"), 8, "number 7 shows no heads"),
        (with_line(8, ",0,0,0,1,0,0"), 8, "number '' is not an integer"),
        (with_line(8, "7;0;0;0;1;0;0"), 8, "1 fields, should be 7"),
        (with_line(8, "7,0,0,0,1,8,0"), 8, "black '8' is too large; should be 0 to 7"),
        (with_line(8, "7,0,0,0,1,0," + "9" * 5000), 8, "is too large"),
        (with_line(8, "7,0,0,0,1,0,²"), 8, "white '²' is not an integer"),
        (with_line(8, "7,0,0,0,0,0,0"), 8, "number 7 shows no heads; should be at least one"),
        (with_line(53, "52,1,1,1,1,1,2"), 53, "number 52 is a Baron and should show 1,1,1,1,1,1"),
        (with_line(105, "104,0,0,0,0,0,0"), 105, "number 104 is a Baron"),
        (with_line(8, "7,1,0,0,0,0"), 8, "6 fields, should be 7"),
        (with_line(8, "7,1,0,0,0,0,0,0"), 8, "8 fields, should be 7"),
        (with_line(8, "7"), 8, "1 fields, should be 7"),
        (with_line(1, "n,b,y,g,r,k,w"), 1, "wrong header 'n,b,y,g,r,k,w'; should be " + HEADER),
        (with_line(1, HEADER.replace("red", "pink")), 1, "missing: red; unknown: 'pink'"),
        (with_line(1, HEADER.replace("red", "blue")), 1, "missing: red; twice: blue"),
        (with_line(1, HEADER + ",points"), 1, "should be " + HEADER + "; unknown: 'points'"),
        (with_line(1, None), 1, "the header is missing; the first line should be " + HEADER),
        (HEADER + "\n", 2, "numbers 1 to 110 are missing"),
        (with_line(8, "7;0;x;0;1;0;0").replace(",", ";"), 8, "yellow 'x' is not an integer"),
        (
            with_line(8, "7,0,0,0,1,0,y").replace(HEADER, "Nr,Weiss,Blau,Gelb,Grün,Rot,Schwarz"),
            8,
            "Schwarz 'y' is not an integer; should be 0 to 7",
        ),
    ],
)
def test_a_deck_with_a_fault_is_readable_and_the_fault_named_by_line(content, line, says, write):
    path = write(content)
    faults = cards.check_deck(path)
    assert any(fault.line == line and says in fault.message for fault in faults), faults
    with pytest.raises(DeckError) as caught:
        load_deck(path)
    assert caught.value.readable
    assert str(path) in str(caught.value)


NAMED = {
    "en": "Number BLUE yellow GREEN red Black white",
    "de": "Zahl Blau Gelb Grün Rot Schwarz Weiß",
    "DE": "NUMMER BLAU GELB GRÜN ROT SCHWARZ WEISS",
    "fr": "Numéro bleu jaune vert rouge noir blanc",
    "n°": "n° BLEU JAUNE VERT ROUGE NOIR BLANC",
    "tw": "編號 藍 黃 綠 紅 黑 白",
    "cn": "号码 蓝色 黄色 绿色 红色 黑色 白色",
}


@pytest.mark.parametrize(
    ("language", "separator", "encoding"),
    [
        ("en", ",", "utf-8"),
        ("de", ";", "cp1252"),  # Excel in German and French
        ("de", "\t", "utf-16"),  # its "Unicode text"
        ("DE", ";", "utf-8-sig"),
        ("de", ",", "mac_roman"),
        ("fr", ";", "cp1252"),
        ("n°", ";", "latin-1"),
        ("tw", ",", "big5"),
        ("cn", ",", "gb18030"),
        ("cn", "\t", "utf-16"),
    ],
)
def test_a_deck_is_read_as_spreadsheets_write_it(language, separator, encoding, tmp_path):
    order = [3, 0, 6, 5, 4, 2, 1]
    lines = [[NAMED[language].split()[place] for place in order]]
    for fields in (line.split(",") for line in GOOD.splitlines()[1:]):
        lines.append([fields[place] if fields[place] != "0" else "" for place in order])
    lines[4:4] = [[""] * 7, []]
    text = "\r\n".join(separator.join([*line, "", ""]) for line in lines) + "\r\n\r\n"
    for start in ("", f"sep={separator}\r\n"):
        path = tmp_path / "deck.csv"
        path.write_bytes((start + text).encode(encoding))
        assert np.array_equal(load_deck(path), load_deck("balanced"))


def test_one_fault_is_one_message(write):
    for content in (
        with_line(8, None),
        with_line(8, "7,1,0"),
        with_line(8, "7,-1,0,0,1,0,0"),
        with_line(1, "number,yellow,blue,green,red,black,pink"),
        with_line(1, None),
    ):
        assert len(cards.check_deck(write(content))) == 1


def test_all_faults_are_listed_in_the_order_of_their_lines(write):
    lines = GOOD.splitlines()
    lines[3], lines[9], lines[60] = "3,0,0,0,0,0,0", "9,-1,8,0,x,0,0", "59," + lines[60][3:]
    faults = cards.check_deck(write("\n".join(lines)))
    assert [(fault.line, fault.message.partition(";")[0]) for fault in faults] == [
        (4, "number 3 shows no heads"),
        (10, "blue '-1' is negative"),
        (10, "yellow '8' is too large"),
        (10, "red 'x' is not an integer"),
        (61, "number 59 appears twice, first on line 60"),
        (62, "number 60 is missing"),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "line 1: the file is empty; it should begin with " + HEADER),
        (b"\n \n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (GOOD.encode("utf-16")[:-1], "the file is no whole UTF-16; save it as UTF-8"),
        (b"caf\xe9,1\n" + GOOD.encode(), "line 1: byte 0xe9 is not UTF-8"),
        (GOOD.encode() + b"\0\n", "line 112: a null byte"),
        (b"# notes\n\nno deck here\n", "line 1: wrong header '# notes'; should be " + HEADER),
        (b"1,2,3\n" * 9, "line 1: wrong header"),
        (b"x" * 200_000, "line 1: wrong header"),
        (GOOD.encode() * 700, "is larger than 1,048,576 bytes"),
    ],
)
def test_a_file_without_a_deck_in_it_is_unreadable(content, says, write):
    with pytest.raises(DeckError) as caught:
        cards.check_deck(write(content))
    assert says in str(caught.value)
    assert not caught.value.readable


def test_folders_and_missing_files_and_unknown_names_are_told_apart(tmp_path):
    with pytest.raises(DeckError, match=r"is a folder"):
        load_deck(tmp_path)
    for spec in ("balancd", str(tmp_path / "none.csv"), "", "a\0b", "x" * 5000):
        with pytest.raises(DeckError, match="shipped decks are balanced, three-color, two-color"):
            load_deck(spec)
    with pytest.raises(DeckError, match="did you mean 'balanced'"):
        load_deck("balancd")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_access_is_unreadable(write):
    path = write(GOOD)
    path.chmod(0)
    with pytest.raises(DeckError, match="Permission denied"):
        load_deck(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda deck: deck.astype(float), "float64 array of shape (110, 6); should be an integer"),
        (lambda deck: deck[:109], "shape (109, 6)"),
        (lambda deck: deck > 0, "bool array"),
        (lambda deck: [*deck.tolist()[:-1], [1]], "should be an integer array of shape (110, 6)"),
        (lambda deck: None, "should be an integer array"),
        (lambda deck: deck.astype(int) - 2, "number 1: blue '-2' is negative"),
        (lambda deck: deck.astype(int) + 256, "number 1: blue '256' is too large"),
        (lambda deck: deck * (np.arange(110) != 6)[:, None], "number 7 shows no heads"),
        (lambda deck: np.roll(deck, 1, axis=0), "number 52 is a Baron"),
    ],
)
def test_an_array_is_checked_like_a_file(change, says):
    with pytest.raises(DeckError) as caught:
        load_deck(change(load_deck("balanced")))
    assert says in str(caught.value)


def test_a_deck_error_is_short_and_survives_pickling(write):
    with pytest.raises(DeckError) as caught:
        load_deck(np.zeros((110, 6), int))
    assert len(caught.value.faults) == NUMBERS
    assert len(str(caught.value)) < 500
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.faults) == (str(caught.value), caught.value.faults)


@given(st.binary(max_size=400))
def test_no_bytes_crash_the_check(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    for data in (content, GOOD.encode()[:200] + content, HEADER.encode() + b"\n" + content):
        path.write_bytes(data)
        with pytest.raises(DeckError):
            load_deck(path)


# --------------------------------------------------------------------------- random decks


@pytest.mark.parametrize("name", DECK_NAMES)
def test_a_random_deck_has_the_types_of_its_model_and_treats_colors_alike(name):
    rng = np.random.default_rng(0)
    model = cards.describe(load_deck(name))
    for _ in range(20):
        deck = cards.random_deck(name, rng)
        assert cards.describe(deck) == model
        test = [tuple(sorted(column)) for column in deck[ORDINARY].T]
        assert len(set(test)) == 1
    assert not np.array_equal(deck, cards.random_deck(name, rng))


def test_a_random_deck_can_be_made_from_any_deck():
    odd = load_deck("balanced")
    odd[0] = [7, 0, 0, 0, 0, 0]
    deck = cards.random_deck(odd, np.random.default_rng(0))
    assert deck.sum() == odd.sum()
    assert cards.check_deck(deck) == []


def test_cards_are_written_one_way_and_read_in_any_case():
    deck = load_deck("balanced").tolist()
    text = cards.card_text(63, deck[62])
    assert text == "63 BK"
    assert cards.card_text(82, deck[81]) == "82 RRR"  # one head of a color, one letter
    assert cards.card_text(52, [1] * 6) == "52 BYGRKW"
    assert cards.card_text(9, [4, 3, 0, 0, 0, 0]) == "9 B4Y3"
    for typed in ("63 BK", "63bk", "63", "63 kb", " 63  Bk "):
        assert cards.read_cards(typed, deck) == [63]
    assert cards.read_cards("63bk, 82 RRR; 7 104 BYGRKW", deck) == [63, 82, 7, 104]
    assert cards.read_cards("", deck) == []
    for typed, says in [
        ("63 bb", "there is no card 63 BB in this deck; it has 63 BK"),
        ("111", "there is no card 111; cards are 1 to 110"),
        ("0", "there is no card 0"),
        ("bk", "'bk' is no card number"),
        ("6-3", "'6-3' is no card number"),
    ]:
        with pytest.raises(ValueError, match=says):
            cards.read_cards(typed, deck)


def test_a_card_is_written_the_same_by_every_command(tmp_path, capsys):
    from oxx_env import notation, records
    from oxx_env.commands import _cli
    from oxx_env.game.table import Table
    from oxx_env.show import terminal

    deck = load_deck("balanced").tolist()
    table = Table(players=2)
    table.deal(seed=1)
    number = table.view(0).hand[0]
    written = cards.card_text(number, deck[number - 1])
    assert written in terminal.render.text(table.view(0), color=False)
    assert terminal.Terminal(color=False).card(number, deck) == written
    while not table.over:
        seat = table.deciders()[0]
        table.act(seat, table.legal(seat)[0])
    (record,) = records.records_of(table)
    path = tmp_path / "a.jsonl"
    path.write_text(records.to_line(record) + "\n")
    assert _cli.main(["replay", str(path)]) == 0
    told = capsys.readouterr().out
    assert f"{written} to row" in told or f"{written} fits no row" in told
    with pytest.raises(notation.PositionError, match="card 28 RR shares no color with 22 B before"):
        notation.read_position("4p rows 22-28 1 2 3 4 hand 5 6 7 8")
