"""Drawing a view: text, SVG, pixels, window."""

import functools
import re
import runpy
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from oxx_env import cards, render
from oxx_env.game.scoring import direction
from oxx_env.game.table import Table

ESCAPES = re.compile("\x1b\\[[0-9;]*m")
SVG = "{http://www.w3.org/2000/svg}"


def views(players=4, rules="base", deck="balanced"):
    """The deciding seats' views in a randomly played game, and one view of its end."""
    return (
        played(players, rules, deck) if isinstance(deck, str) else list(play(players, rules, deck))
    )


@functools.cache
def played(players, rules, deck):
    return list(play(players, rules, deck))


def play(players, rules, deck, games=1, seed=1):
    table = Table(players=players, rules=rules, deck=deck, games_per_match=games)
    table.deal(seed=seed)
    rng = np.random.default_rng(seed)
    while not table.over:
        seat = table.deciders()[0]
        yield table.view(seat)
        table.act(seat, int(rng.choice(table.legal(seat))))
    yield table.view(0)


def first(phase, **options):
    """The second view in this phase."""
    found = [view for view in views(**options) if view.phase == phase]
    return found[min(1, len(found) - 1)]


def shown_numbers(view):
    own = {*view.hand, *(number for _, number in view.revealed)}
    return own | {number for row in view.rows for number in row}


SETTINGS = [(2, "base"), (4, "color"), (3, "positive"), (10, "color+positive")]


# --- text ---


@pytest.mark.parametrize(("players", "rules"), SETTINGS)
def test_text_without_color_says_the_same_as_text_with_color(players, rules):
    for view in views(players, rules):
        painted, plain = render.text(view), render.text(view, color=False)
        assert "\x1b" in painted
        assert "\x1b" not in plain
        assert ESCAPES.sub("", painted) == plain


@pytest.mark.parametrize(("players", "rules"), SETTINGS)
def test_text_shows_every_card_of_the_table_with_its_heads_as_letters(players, rules):
    deck = cards.load_deck("balanced")
    for view in views(players, rules):
        text = render.text(view, color=False)
        for number in shown_numbers(view):
            marks = render.letters(deck[number - 1].tolist())
            assert re.search(rf"(?<!\d){number} {marks}\b", text), (number, marks, text)
        assert direction(rules) in text
        for points in view.scores:
            assert f"{points} point" in text


def test_letters_are_one_a_head_and_counts_where_there_are_more_than_six():
    assert render.letters([1, 1, 1, 1, 1, 1]) == "BYGRKW"
    assert render.letters([0, 0, 0, 0, 2, 1]) == "KKW"
    assert render.letters([7, 0, 0, 0, 0, 2]) == "B7W2"


def test_text_marks_legal_rows_and_numbers_legal_hand_slots():
    view = first("row")
    text = render.text(view, False)
    assert [a for a in range(4, 9) if f"[{a}] row {a - 4} " in text] == view.legal
    text = render.text(view, False, actions=False)
    assert [a for a in range(4, 9) if f"  > row {a - 4} " in text] == view.legal
    view = first("card")
    text = render.text(view, False)
    assert all(f"[{slot}]" in text for slot in view.legal)


@pytest.mark.parametrize(("players", "rules"), SETTINGS)
def test_sentences_tell_the_table_in_words_without_layout(players, rules):
    deck = cards.load_deck("balanced")
    for view in views(players, rules):
        told = render.sentences(view)
        assert not set(told) & set("\x1b[]>·│─") and "  " not in told
        for number in shown_numbers(view):
            assert f" {number} with {render.in_words(deck[number - 1].tolist())}" in told
        assert all(line.endswith(".") for line in told.splitlines())
        assert f"{direction(rules)}." in told


def test_names_replace_seat_numbers():
    text = render.text(first("card", players=2), False, names=["Ada", "Bob"])
    assert "Ada" in text
    assert "Bob" in text
    assert "seat" not in text


# --- pictures ---


def texts(svg):
    return [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(("players", "rules"), SETTINGS)
def test_svg_is_xml_with_every_card_of_the_table_and_the_direction_in_words(players, rules):
    for view in views(players, rules)[::7]:
        words = texts(render.svg(view))
        for number in shown_numbers(view):
            assert str(number) in words
        assert direction(rules).capitalize() in words
        assert all(str(points) in words for points in view.scores)


def test_nothing_is_drawn_outside_the_picture():
    heavy = np.full((110, 6), 7)
    heavy[[51, 103]] = 1
    for options in [{"players": 10}, {"players": 4, "rules": "color"}, {"deck": heavy}]:
        for view in views(**options)[::5]:
            for shape in render._scene(view):
                if isinstance(shape, render._Polygon):
                    assert all(0 <= x <= render.WIDTH for x, _ in shape.points)
                    assert all(0 <= y <= render.HEIGHT for _, y in shape.points)
                else:
                    assert 0 <= shape.x <= render.WIDTH
                    assert 0 <= shape.y <= render.HEIGHT


@pytest.mark.parametrize(("players", "rules"), SETTINGS)
def test_pixels_are_an_uint8_picture_that_depends_on_the_view_alone(players, rules):
    view = first("card", players=players, rules=rules)
    pixels = render.rgb_array(view)
    assert pixels.shape == (render.HEIGHT, render.WIDTH, 3)
    assert pixels.dtype == np.uint8
    assert len({tuple(color) for color in pixels[::3, ::3].reshape(-1, 3).tolist()}) > 20
    assert (pixels == render.rgb_array(view)).all()
    other = first("row", players=players, rules=rules)
    assert (pixels != render.rgb_array(other)).any()


def test_drawing_never_changes_the_game_or_its_random_stream():
    table = Table(players=3)
    table.deal(seed=4)
    before = table.games.tobytes()
    view = table.view(1)
    blanked = view.games.tobytes()
    render.text(view), render.svg(view), render.rgb_array(view)
    assert table.games.tobytes() == before
    assert view.games.tobytes() == blanked


def test_a_missing_extra_is_named(monkeypatch):
    view = first("card")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"needs pillow: .*\[render\]"):
        render.rgb_array(view)
    monkeypatch.delitem(sys.modules, "PIL")
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ImportError, match=r"needs pygame-ce: .*\[render\]"):
        render.Window()


@pytest.fixture
def pygame(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    return pytest.importorskip("pygame")


def on_screen(pygame):
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


def test_a_window_shows_the_pixels_until_it_is_closed(pygame):
    view = first("card")
    window = render.Window(width=900)
    assert window.show(view)
    assert (on_screen(pygame) == render.rgb_array(view, width=900)).all()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert not window.show(view)
    assert not window.is_open
    assert not window.show(view)
    window.close()


def test_the_picture_follows_the_size_of_the_window(pygame):
    view = first("card")
    window = render.Window(width=600)
    window.show(view)
    pygame.display.set_mode((800, 800), pygame.RESIZABLE)
    window._surface = pygame.display.get_surface()
    pygame.event.post(pygame.event.Event(pygame.VIDEORESIZE, size=(800, 800), w=800, h=800))
    window._handle_events()
    shown = on_screen(pygame)
    assert (shown[120:680] == render.rgb_array(view, width=800)).all()
    assert len(np.unique(shown[:120].reshape(-1, 3), axis=0)) == 1  # felt above and below
    window.close()


def test_each_view_stays_for_its_time(pygame, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(render.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(render.time, "sleep", lambda seconds: now.append(now.pop() + seconds))
    window = render.Window(width=400, fps=2)
    window.show(first("card"))
    assert now == [100.0]
    window.show(first("row"))
    assert now[0] == pytest.approx(100.5, abs=0.02)
    now[0] += 3  # who thinks for longer waits no more
    window.show(first("card"))
    assert now[0] == pytest.approx(103.5, abs=0.02)
    window.close()


def test_a_window_fits_its_screen():
    for screen in [(1280, 720), (1366, 768), (1920, 1080), (3840, 2160), (1080, 1920), (640, 480)]:
        width = render.fitting_width(*screen)
        assert width <= screen[0] and render.height_of(width) <= screen[1]
    assert render.fitting_width(1920, 1080) == 1152


def test_pixels_come_in_any_reasonable_width():
    view = first("row")
    for width in (100, 641, 2000):
        assert render.rgb_array(view, width=width).shape == (render.height_of(width), width, 3)
    for width in (99, 4001):
        with pytest.raises(ValueError, match="100 to 4000"):
            render.rgb_array(view, width=width)


def test_the_readme_picture_is_what_its_command_draws():
    images = Path(__file__).parents[1] / "docs/images"
    make = runpy.run_path(str(images / "make.py"))
    assert (images / "table.svg").read_text("utf-8") == render.svg(make["position"]())


def test_a_notebook_shows_a_view_as_its_picture():
    view = first("card")
    picture = view._repr_svg_()
    assert picture.replace(' style="max-width:100%;height:auto"', "") == render.svg(view) != picture
