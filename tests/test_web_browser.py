"""The page of `oxx serve` in headless Chromium: what a person sees, clicks and types."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest

from oxx_env import cards, records
from oxx_env.commands import _cli

sync_api = pytest.importorskip(
    "playwright.sync_api",
    reason="playwright is not installed: sh tests/install_browser.sh .venv/bin/python",
)
pytest.importorskip("uvicorn", reason="the extra `web` is not installed")
pytestmark = pytest.mark.slow

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
CHOICE = "button.pick:not(:disabled), button.row"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a running `oxx serve`."""
    folder = tmp_path_factory.mktemp("games")
    command = [sys.executable, "-m", "oxx_env", "serve", "--port", "0", "--seed", "7"]
    with subprocess.Popen(
        [*command, "--folder", str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        yield re.search(r"http://\S+/", process.stdout.readline())[0]
        process.terminate()


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: sh tests/install_browser.sh .venv/bin/python")
    with sync_api.sync_playwright() as driver:
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        try:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=root)
        except sync_api.Error as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium, server):
    """Make a new browser profile and open the page; no script may fail on any of them."""
    contexts, faults = [], []

    def visit(where="", pace="0", **options):
        context = chromium.new_context(base_url=server, **options)
        context.set_default_timeout(20_000)
        context.add_init_script(  # about:blank, where a page begins, has no store
            f"if (location.origin !== 'null') localStorage.setItem('oxx.pace', '\"{pace}\"')"
        )
        context.on("weberror", lambda error: faults.append(str(error.error)))
        contexts.append(context)
        page = context.new_page()
        page.goto(where)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not faults


def start(page, players=10, **choices):
    """A new table by the form on the first page."""
    page.get_by_label("Players").select_option(str(players))
    for label, value in choices.items():
        page.get_by_label(label.capitalize()).select_option(value)
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector(CHOICE)


@contextlib.contextmanager
def redrawn(page, part=".game"):
    """Wait, after the block, until a part of the page has changed."""
    script = "part => document.querySelector(part).innerHTML"
    before = page.evaluate(script, part)
    yield
    page.wait_for_function(f"([part, old]) => ({script})(part) !== old", arg=[part, before])


def choose(page, choice=CHOICE):
    """Click the first choice."""
    page.wait_for_selector(choice)
    with redrawn(page):
        page.locator(choice).first.click()


def play_on(page, act=choose, choice=CHOICE, limit=300):
    """Let `act(page)` decide until the match is over; how many decisions there were."""
    for count in range(limit):
        page.wait_for_selector(f"{choice}, #result")
        if page.query_selector("#result"):
            return count
        with redrawn(page):
            act(page)
    raise AssertionError("the game does not end")


def write_games(file, **options):
    """A file of recorded games."""
    options = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    _cli.main(["record", "--bots", "greedy", "--games", "1", *options, "--output", str(file)])


def wait_for_text(page, selector, pattern):
    """Wait until the text of an element matches a JavaScript pattern."""
    script = f"selector => /{pattern}/.test(document.querySelector(selector)?.innerText ?? '')"
    page.wait_for_function(script, arg=selector)


def wait_for_log(page, timeout=None):
    """Wait until the log has a line."""
    page.wait_for_selector(".log li", state="attached", timeout=timeout)


def test_a_whole_game_is_played_by_clicking(visitor):
    page = visitor()
    start(page, rules="base")
    assert page.get_by_text("Fewest points win").first.is_visible()
    assert play_on(page) >= 6
    assert re.search(r"You won|share|finished \d+(st|nd|rd|th)", page.inner_text("#result"))
    assert page.locator("[aria-label='The result'] tbody tr").count() == 10


def test_a_whole_game_is_played_by_keyboard_alone(visitor):
    page = visitor()
    page.wait_for_selector("form")
    setup = {"players": 9, "rules": "positive", "deck": "balanced", "games": 1, "coach": True}
    setup |= {"name": "Kim", "all": "greedy"}
    page.evaluate("setup => localStorage.setItem('oxx.setup', JSON.stringify(setup))", setup)
    page.reload()
    page.wait_for_selector("form")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Start":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector(".game")
    assert "Most points win" in page.inner_text(".head")
    keys = iter(["1", "arrows"] * 100)

    def press(page):
        if page.query_selector("button.row"):
            free = page.locator("button.row").first.get_attribute("data-row")
            page.keyboard.press(free)
        elif next(keys) == "1":
            page.keyboard.press("1")
        else:  # the first choice has the focus
            page.keyboard.press("ArrowRight")
            page.keyboard.press("Enter")

    play_on(page, press)
    assert "Kim (you)" in page.inner_text("[aria-label='The result']")


def test_a_reload_in_mid_game_goes_on_where_it_was(visitor):
    page = visitor()
    start(page, players=4)
    for _ in range(3):
        choose(page)
    page.wait_for_selector(CHOICE)

    def seen():
        texts = [page.inner_text(part) for part in (".head .message", ".seats")]
        images = page.locator(".board .card, .hand .card").all()
        return texts + [image.get_attribute("src") for image in images]

    before = seen()
    page.reload()
    page.wait_for_selector(CHOICE)
    assert seen() == before
    choose(page)
    page.wait_for_selector(CHOICE)


def test_two_tabs_of_one_seat_do_not_disturb_each_other(visitor):
    page = visitor()
    start(page, players=3)
    other = page.context.new_page()
    other.goto(page.url)
    for turn in range(6):
        here, there = (page, other) if turn % 2 else (other, page)
        here.wait_for_selector(CHOICE)
        there.wait_for_selector(CHOICE)
        assert there.inner_text(".message") == here.inner_text(".message")
        with redrawn(here, ".message"), redrawn(there, ".message"):
            here.locator(CHOICE).first.click()


def numbers(page, selector):
    """The numbers of the cards that a selector finds."""
    script = "cards => cards.map((card) => Number(card.dataset.card))"
    return page.eval_on_selector_all(selector, script)


def hand_of(page):
    return numbers(page, ".pick [data-card]")


def test_two_people_at_one_table_never_get_each_others_hands(visitor):
    page = visitor()
    bodies, addresses = {0: [], 1: []}, {0: [], 1: []}

    def listen(page, who):
        page.context.on("request", lambda request: addresses[who].append(request.url))
        page.context.on("requestfinished", lambda request: bodies[who].append(request))

    listen(page, 0)
    page.get_by_text("Seat by seat").click()
    page.get_by_label("Players").select_option("2")
    page.get_by_label("Seat 1").select_option("human")
    page.get_by_role("button", name="Start").click()
    link = page.get_by_role("link", name="Invitation").get_attribute("href")
    other = visitor(link)
    listen(other, 1)
    other.get_by_label("Your name").fill("Ben")
    other.get_by_role("button", name="Take a seat").click()
    for _ in range(4):
        for one in (page, other):
            one.wait_for_selector(".pick")
        hands = [hand_of(page), hand_of(other)]
        assert all(hands) and not set(hands[0]) & set(hands[1])
        # One has chosen, the other not yet: the chosen card lies face down.
        other.locator("button.pick:not(:disabled)").first.click()
        other.wait_for_selector(".pick.chosen")
        page.wait_for_function(
            "() => !document.querySelector('.seats').innerText.includes('choosing')"
        )
        for who, hidden in ((0, hands[1]), (1, hands[0])):
            for number in hidden:
                assert not any(f"/card/{number}-" in address for address in addresses[who])
            for request in bodies[who]:
                if "/api/tables/" not in request.url or request.method != "GET":
                    continue
                told = request.response().json()
                shown = {n for e in told["events"] if e["kind"] == "reveal" for n in e["cards"]}
                assert not (shown | set(told["hand"]) | {told["picked"]}) & set(hidden)
        assert not any("#" in a or "Bearer" in a for a in addresses[0] + addresses[1])
        page.locator("button.pick:not(:disabled)").first.click()
        for _ in range(4):  # rows to choose, until both have cards to choose again
            for one in (page, other):
                one.wait_for_timeout(150)
                # By locator: a page that redraws meanwhile has another element, not another row.
                if one.locator("button.row").count():
                    one.locator("button.row").first.click()
        if any(one.query_selector("button.pick:not(:disabled)") is None for one in (page, other)):
            break  # the last card of a hand plays itself


def share_a_table(page, players=3):
    """A table of Anna and Ben, who sit at this device, and bots."""
    page.wait_for_selector("form")
    page.get_by_label("Players").select_option(str(players))
    page.get_by_label("Opponents").select_option("greedy")
    page.get_by_label("Your name").fill("Anna")
    if not page.get_by_label("Seat 1").is_visible():
        page.get_by_text("Seat by seat").click()
    page.get_by_label("Seat 1").select_option("here")
    page.get_by_label("Name of player 2").fill("Ben")
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector("#uncover")


def shows_no_card_of(page, hand):
    """No card of a hand is anywhere in the page: not as a picture, not in words."""
    main = page.evaluate("document.querySelector('main').innerHTML")
    for number in hand:
        assert f'data-card="{number}"' not in main and f"card/{number}-" not in main
        words = rf"\b{number}, \d (blue|yellow|green|red|black|white)"
        assert not re.search(words, main + page.inner_text("#announcer"))
    assert page.locator(".pick").count() == 0
    assert page.locator(".coach").count() == 0


def test_people_at_one_device_see_one_hand_at_a_time(visitor):
    page = visitor()
    asked = []
    page.on("request", lambda request: asked.append(request))
    share_a_table(page)
    tokens = page.url.split("/")[-1].split(".")
    assert len(set(tokens)) == 2
    assert "Anna: it is your turn" in page.inner_text(".message")
    assert page.evaluate("document.activeElement.id") == "uncover"
    hands, played = {}, []
    for turn in range(6):  # three rounds; the last chooser stays in front for the next one
        page.wait_for_selector("#uncover.main, button.row")
        while page.locator("button.row").count():  # rows are chosen in the open
            assert re.match(r"(Anna|Ben): choose a row for \d+", page.inner_text(".message"))
            with redrawn(page, ".message"):
                page.locator("button.row").first.click()
            page.wait_for_selector("#uncover.main, button.row")
        name = re.fullmatch(r"Show (Anna|Ben)'s cards", page.inner_text("#uncover"))[1]
        assert page.inner_text(".message").startswith(f"{name}: it is your turn")
        played.append(name)
        shows_no_card_of(page, [n for hand in hands.values() for n in hand])
        if turn == 3:
            page.reload()  # the curtain is there again
            page.wait_for_selector("#uncover")
            shows_no_card_of(page, [n for hand in hands.values() for n in hand])
        for key in ("1", "c"):  # no card can be chosen blindly, and no coach asked
            page.keyboard.press(key)
        shows_no_card_of(page, [])
        assert page.evaluate("document.activeElement.id") == "uncover"
        page.keyboard.press("Enter")
        page.wait_for_selector("button.pick:not(:disabled)")
        shown = hand_of(page)
        assert page.get_by_role("region", name=f"{name}'s hand").count() == 1
        assert not any(set(shown) & set(hand) for who, hand in hands.items() if who != name)
        page.wait_for_selector(".coach")  # for the one in front
        page.keyboard.press("1")
        hands[name] = shown[1:]
        page.wait_for_selector(".curtain")
    assert all(len(set(played[i : i + 2])) == 2 for i in (0, 2, 4))
    for request in asked:  # each seat's token goes in a header, one at a time
        assert not any(token in request.url for token in tokens)


def test_a_shared_game_is_played_to_its_end_and_again(visitor):
    page = visitor()
    share_a_table(page, players=9)
    choice = f"#uncover.main, {CHOICE}"
    play_on(page, lambda page: page.locator(choice).first.click(), choice)
    assert re.search(r"(Anna|Ben|Greedy).* won!", page.inner_text("#result"))
    page.get_by_role("link", name="Review the match").click()
    page.get_by_label("Seat").select_option("1")
    page.wait_for_selector("svg.graph", timeout=60_000)
    page.get_by_role("link", name="Back to the table").click()
    page.get_by_role("button", name="Play again").click()
    page.wait_for_selector("#uncover")
    assert len(page.url.split("/")[-1].split(".")) == 2


def test_the_coach_advises_and_tells_what_a_move_cost(visitor):
    page = visitor()
    start(page)
    page.keyboard.press("c")
    page.wait_for_selector("#advice")
    assert page.locator("#advice tbody tr").count() == page.locator(CHOICE).count()
    assert page.locator("#advice tr.best").count() == 1
    assert page.locator("#advice td li").count() >= page.locator("#advice tbody tr").count()
    page.locator(CHOICE).last.click()
    page.wait_for_selector("#judgement")
    judgement = r"best choice|about equal|lost [\d.]+ points \(± [\d.]+\)"
    assert re.search(judgement, page.inner_text("#judgement"))
    play_on(page, lambda page: page.locator(CHOICE).last.click())
    page.get_by_role("link", name="Review the match").click()
    page.wait_for_selector("#worst")
    assert page.locator("#worst > li").count() <= 3
    assert "Chance to win" in page.locator("svg.graph").get_attribute("aria-label")
    assert page.locator("svg.graph polyline").count() == 1
    page.get_by_label("Seat").select_option("3")
    page.wait_for_selector("svg.graph", timeout=60_000)
    link = page.locator("#worst a")
    if link.count():
        link.first.click()
        page.wait_for_selector("#step")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_is_played_by_touch(visitor, scheme):
    page = visitor(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True,
                   color_scheme=scheme)  # fmt: skip
    start(page)
    for _ in range(4):
        page.wait_for_selector(CHOICE)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        for box in [choice.bounding_box() for choice in page.locator(CHOICE).all()]:
            assert min(box["width"], box["height"]) >= 40
            assert box["x"] >= 0 and box["x"] + box["width"] <= 360
        page.locator(CHOICE).first.tap()
        page.wait_for_timeout(300)
    ink, felt = page.evaluate(
        "(() => { const style = getComputedStyle(document.body);"
        " return [style.color, style.backgroundColor]; })()"
    )
    bright = lambda color: sum(map(int, re.findall(r"\d+", color)[:3]))  # noqa: E731
    assert (bright(ink) > bright(felt)) == (scheme == "dark")
    for where in ("#/replay", "#/deck", "#/rules", "#/"):
        page.goto(where)
        page.wait_for_selector("h1")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_everything_on_the_table_is_told_in_words(visitor):
    page = visitor()
    start(page, players=3)
    rows = page.locator(".board [data-row]")
    assert rows.count() == 5
    for row in rows.all():
        assert re.fullmatch(
            r"Row \d: (\d+ with [\w, ]+;? ?)+\. \d cards?, \d+ heads?\.",
            row.get_attribute("aria-label"),
        )
    for choice in page.locator("button.pick").all():
        assert re.match(
            r"Play \d+, \d (blue|yellow|green|red|black|white)", choice.get_attribute("aria-label")
        )
    unnamed = "[...document.querySelectorAll('button, a, select, input')].filter((one) =>"
    unnamed += " !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length))"
    assert page.evaluate(f"{unnamed}.length") == 0
    page.locator(CHOICE).first.click()
    page.wait_for_function("() => document.getElementById('announcer').textContent !== ''")


def test_cards_move_unless_motion_is_not_wanted(visitor):
    for wanted in ("no-preference", "reduce"):
        page = visitor(pace="250", reduced_motion=wanted)
        page.add_init_script(
            "window.moved = 0; const old = Element.prototype.animate;"
            "Element.prototype.animate = function (...all) {"
            " window.moved += 1; return old.apply(this, all); };"
        )
        page.reload()
        page.wait_for_selector("form")
        start(page, players=3)
        page.wait_for_selector(CHOICE)
        page.locator(CHOICE).first.click()
        wait_for_log(page)
        assert (page.evaluate("window.moved") > 0) == (wanted == "no-preference")


def record_messages(page):
    """Collect all messages under the head from now on."""
    page.evaluate(
        "window.messages = []; new MutationObserver(() => window.messages.push("
        "document.querySelector('.message')?.innerText)).observe("
        "document.querySelector('.game'), { childList: true, subtree: true })"
    )


def turn_of(page):
    """How many decisions the server has of the seat of this page."""
    return page.evaluate(
        "async () => { const [, , id, token] = location.hash.split('/');"
        " const headers = { Authorization: `Bearer ${token}` };"
        " return (await (await fetch(`api/tables/${id}`, { headers })).json()).turn; }"
    )


def test_what_is_chosen_without_a_connection_is_sent_once_when_it_is_back(visitor):
    page = visitor()
    start(page, players=3)
    record_messages(page)
    page.context.set_offline(True)
    page.locator(CHOICE).first.click()
    lost = "The connection is lost; your choice is sent as soon as it is back …"
    wait_for_text(page, ".message", lost)
    page.locator(".pick, .row").first.click(force=True)  # it is on its way: no other one counts
    page.wait_for_timeout(1200)
    assert lost in page.inner_text(".message")
    assert not any("fetch" in text for text in page.evaluate("window.messages") if text)
    page.context.set_offline(False)
    wait_for_log(page, timeout=5000)
    wait_for_text(page, ".message", "^(?!.*connection)")
    assert turn_of(page) == 1


def test_a_page_that_was_opened_without_a_connection_opens_when_it_is_back(visitor):
    page = visitor()
    start(page, players=3)
    table = page.evaluate("location.hash")
    page.context.set_offline(True)
    page.evaluate("location.hash = '#/'")
    page.wait_for_selector("form")
    page.evaluate("hash => { location.hash = hash; }", table)
    page.wait_for_selector("[role=alert]")
    assert page.inner_text("[role=alert]") == "The connection to the server is lost."
    page.context.set_offline(False)
    page.wait_for_selector(".game", timeout=5000)


def test_a_move_whose_answer_is_lost_is_neither_lost_nor_made_twice(visitor):
    page = visitor()
    start(page, players=3)
    keys = []

    def lose(route):
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            route.fetch()  # it arrives; its answer does not
            route.abort()
        else:
            route.continue_()

    page.route("**/moves*", lose)
    page.locator(CHOICE).first.click()
    wait_for_log(page)
    for _ in range(50):
        if len(keys) < 2:
            page.wait_for_timeout(100)
    assert len(keys) == 2 and len(set(keys)) == 1
    page.wait_for_selector(CHOICE)
    assert turn_of(page) == 1


def invite_ben(visitor, name="Ben"):
    """The pages of who made a table and of a guest, who clicks faster than the server answers."""
    page, asked = visitor(), []
    page.on("request", lambda request: asked.append(request))
    page.get_by_text("Seat by seat").click()
    page.get_by_label("Players").select_option("3")
    for seat in (1, 2):
        page.get_by_label(f"Seat {seat}").select_option("human")
    page.evaluate(
        "() => { const b = document.querySelector('[type=submit]'); b.click(); b.click(); }"
    )
    page.wait_for_selector(".game")
    assert [one.url for one in asked if one.method == "POST"] == [
        page.url.split("#")[0] + "api/tables"
    ]
    links = page.get_by_role("link", name="Invitation")
    assert links.count() == 2
    guest = visitor(links.nth(0).get_attribute("href"))
    guest.get_by_label("Your name").fill(name)
    guest.get_by_role("button", name="Take a seat").dblclick()
    guest.wait_for_selector(".pick")
    page.wait_for_function("() => document.querySelectorAll('.invite').length === 1")
    return page, guest


def test_a_guest_takes_one_seat_and_is_told_when_it_is_given_to_a_bot(visitor):
    name = "\u05d3\u05e0\u05d4 (you)"
    page, guest = invite_ben(visitor, name)
    assert page.locator(".seats bdi").nth(1).inner_text() == name
    assert guest.locator(".invite").count() == 0  # who made the table invites
    page.get_by_text("Watchers and seats").click()
    page.get_by_role("button", name="Change seats").click()
    page.locator("#bot-1").dblclick()
    guest.wait_for_selector("[role=alert]")
    assert guest.inner_text("[role=alert]") == "your seat was given to Careful; you may watch"
    wait_for_text(page, ".seats", "Careful")
    assert f"Careful plays on for {name}." in page.locator(".log li").all_text_contents()
    guest.get_by_role("link", name="Watch the table").click()
    guest.wait_for_selector(".game")
    assert "You are watching" in guest.inner_text(".head")
    assert guest.locator(".pick, .coach, #leave").count() == 0
    page.locator("button.pick:not(:disabled)").first.click()
    page.locator("#bot-2").click()
    guest.wait_for_selector(".log li.round", state="attached")
    assert guest.locator(".pick").count() == 0


def test_one_who_leaves_may_watch_and_another_seat_is_taken_by_saying_so(visitor):
    page, guest = invite_ben(visitor)
    link = page.locator(".invite").get_attribute("href")
    other = guest.context.new_page()
    other.goto(link)
    assert "already has a seat at this table" in other.inner_text("main")
    other.get_by_label("Name of the other player").fill("Bea")
    other.get_by_role("button", name="Take another seat").click()
    other.wait_for_selector(".curtain")  # two at one device
    names = other.locator(".seats .who").all_inner_texts()
    assert names[1:] == ["Ben", "Bea"]
    guest.on("dialog", lambda dialog: dialog.accept())
    guest.get_by_text("Watchers and seats").click()
    guest.get_by_role("button", name="Leave the table").click()
    wait_for_text(guest, "body", "You are watching")
    wait_for_text(page, ".seats", "Careful")
    wait_for_text(other, ".seats", "Careful")


def test_a_match_shows_its_standings_between_games(visitor):
    page = visitor()
    page.get_by_label("Games").fill("2")
    start(page)

    pauses = []

    def act(page):
        if page.locator("#go-on").count():
            pauses.append(page.inner_text("[aria-label='Between two games']"))
        page.locator(f"{CHOICE}, #go-on").first.click()

    play_on(page, act, f"{CHOICE}, #go-on")
    assert len(pauses) == 1 and "Game 1 of 2 is over" in pauses[0]


def test_a_wrong_address_is_explained(visitor):
    for where in ("aaaaaaaaaaaaaaaa/token", "%E0%A4%A/token", "aaaaaaaaaaaaaaaa"):
        wait_for_text(visitor(f"#/table/{where}"), "[role=alert]", "no such table")


def test_a_table_without_the_coach_shows_no_coach(visitor):
    page = visitor()
    page.get_by_label("With the coach").uncheck()
    start(page, players=3)
    assert page.locator(".coach").count() == 0
    assert "null" not in page.inner_text("main")


def test_a_record_is_replayed_step_by_step(visitor, tmp_path):
    file = tmp_path / "games.jsonl"
    write_games(file, players=3, rules="positive", games=2)
    record = next(records.read_records(file))
    page = visitor("#/replay")
    page.get_by_label("A file of records").set_input_files(file)
    page.wait_for_selector("#step")
    row = lambda index: numbers(page, f"[data-row='{index}'] [data-card]")  # noqa: E731
    assert [row(index) for index in range(5)] == [[number] for number in record["rows"]]
    page.focus("#main")
    page.keyboard.press("ArrowRight")
    wait_for_text(page, "#step-text", "revealed")
    assert page.locator(".revealed figure").count() == 3
    page.get_by_label("Seen from").select_option("1")
    held = numbers(page, ".held [data-card]")
    hand = sorted(record["draw_piles"][1][:4])
    hand.remove(record["rounds"][0]["cards"][1])
    assert held == hand
    page.focus("#main")
    page.keyboard.press("End")
    wait_for_text(page, "#step-text", "The game is over.")
    points = [int(text) for text in page.locator(".seat .points").all_inner_texts()]
    assert points == record["scores"]
    page.keyboard.press("ArrowLeft")
    page.locator("#step").fill("5")
    assert page.inner_text("#step-text")
    page.locator("#game").select_option("1")
    wait_for_text(page, "#step-text", "The cards are dealt.")
    page.locator("#judged").select_option("2")
    page.get_by_role("button", name="Ask the coach").click()
    page.wait_for_selector("svg.graph", timeout=60_000)
    assert page.locator("[aria-label='Review'] h3").inner_text() == "seat 2"
    assert page.locator("#worst > li").count() <= 3
    see = page.get_by_role("button", name="Show it")
    if see.count():
        round_ = re.search(r"Round \d+", page.locator("#worst > li").first.inner_text())[0]
        see.first.click()
        page.keyboard.press("ArrowRight")
        wait_for_text(page, "#step-text", f"^{round_}:")
    large = tmp_path / "large.jsonl"
    large.write_bytes(b" " * ((8 << 20) + 1))
    page.get_by_label("A file of records").set_input_files(large)
    wait_for_text(page, "[role=alert]", "larger than 8 MB")
    file.write_text(file.read_text().replace('"winners":[', '"winners":[9,', 1))
    page.get_by_label("A file of records").set_input_files(file)
    wait_for_text(page, "[role=alert]", "game 1")


def test_an_own_deck_is_typed_in_saved_and_played(visitor, tmp_path):
    deck = cards.random_deck("two-color", np.random.default_rng(4))
    page = visitor("#/deck")
    page.wait_for_selector("#heads:focus")
    page.keyboard.type("bx")
    page.keyboard.press("Enter")
    assert "no color" in page.inner_text("#fault")
    page.fill("#heads", "")
    page.keyboard.press("Enter")
    assert "at least one head" in page.inner_text("#fault")
    for number, heads in enumerate(deck.tolist(), start=1):
        if number in cards.BARONS:
            continue
        text = "".join(c * n for c, n in zip("bygrkw", heads, strict=True))
        page.keyboard.insert_text(text)
        page.keyboard.press("Enter")
        if number % 10 == 0 and number < 110:  # each look takes longer than the typing
            assert page.inner_text("#which") == f"Card {number + 1}"
    assert "110 of 110" in page.inner_text("#progress")
    page.reload()  # what was typed is still there
    page.wait_for_selector("#heads:focus")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Check and save as CSV").click()
    saving.value.save_as(tmp_path / "own.csv")
    assert (cards.load_deck(tmp_path / "own.csv") == deck).all()
    page.goto("#/")
    page.wait_for_selector("form")
    start(page, deck="own")
    number = hand_of(page)[0]
    source = page.locator(f".hand [data-card='{number}']").get_attribute("src")
    assert source == f"card/{number}-{''.join(map(str, deck[number - 1]))}.svg"
    assert json.loads(page.evaluate("localStorage.getItem('oxx.deck')"))["name"] == "my deck"


def tree(page):
    """Role, name and whether it can have the focus, of all that the accessibility tree shows."""
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    return [
        (
            node["role"]["value"],
            node.get("name", {}).get("value", ""),
            any(one["name"] == "focusable" for one in node.get("properties", [])),
        )
        for node in nodes
        if not node["ignored"]
    ]


NAMED = {"button", "link", "combobox", "checkbox", "textbox", "spinbutton", "slider", "img",
         "image", "table", "region", "columnheader", "rowheader"}  # fmt: skip


def test_the_accessibility_tree_names_all_and_the_curtain_hides_cards_from_it(visitor):
    page = visitor()
    page.evaluate(
        "window.heard = []; new MutationObserver(() => window.heard.push("
        "announcer.textContent)).observe(announcer,"
        " { childList: true, characterData: true, subtree: true })"
    )
    page.wait_for_selector("form")
    seen = tree(page)
    share_a_table(page)
    covered = tree(page)
    page.keyboard.press("Enter")
    page.wait_for_selector("button.pick:not(:disabled)")
    hand = hand_of(page)
    page.keyboard.press("c")
    page.wait_for_selector("#advice")
    shown = tree(page)
    for role, name, focusable in (*seen, *covered, *shown):
        assert name.strip() or role not in NAMED, role
        assert name.strip() or not focusable or role in ("main", "RootWebArea"), role
    told = [name for _, name, _ in covered]
    for number in hand:
        play = re.compile(rf"(Play )?{number}, \d (blue|yellow|green|red|black|white)")
        assert not any(play.match(name) for name in told)
        assert [role for role, name, _ in shown if play.match(name)] == ["button"]
    assert ("button", "Show Anna's cards", True) in covered
    assert {"banner", "navigation", "main", "status"} <= {role for role, _, _ in shown}
    for role in ("table", "row", "columnheader", "rowheader", "cell"):
        assert role in {one for one, _, _ in shown}
    # The keyboard goes through the page in the order in which it is read.
    page.evaluate("document.activeElement.blur()")
    page.evaluate("window.order = [...document.querySelectorAll('*')]")
    order = []
    for _ in range(25):
        page.keyboard.press("Tab")
        at = page.evaluate("window.order.indexOf(document.activeElement)")
        if at in order or at < 0:
            break
        order.append(at)
    assert len(order) >= 9 and max(order) > page.evaluate(
        "window.order.indexOf(document.getElementById('coach'))"
    )
    first = order.index(min(order))
    assert order[first:] + order[:first] == sorted(order)
    # What happens is announced.
    while page.locator(".log li.round").count() == 0 or page.locator(".log li").count() < 4:
        choose(page, f"#uncover.main, {CHOICE}")
    heard = page.evaluate("window.heard")
    assert "Round 1: all cards are revealed." in heard
    lines = page.locator(".log li:not(.round)").all_text_contents()
    assert all(line in heard for line in lines)


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    const hint = node.matches("input") && node.placeholder ? "::placeholder" : null;
    if (!(own || hint) || !node.checkVisibility()) continue;
    if (node.closest(":disabled, svg, noscript")) continue;
    let seen = 1;
    for (let at = node; at; at = at.parentElement) seen *= Number(getComputedStyle(at).opacity);
    const ink = light(rgba(getComputedStyle(node, hint).color)), paper = light(behind(node));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    const what = [node.className, node.textContent.slice(0, 30), ratio, seen];
    if (ratio < 4.5 || seen < 1) poor.push(what);
  }
  return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_what_is_behind_it(visitor, scheme):
    page = visitor(color_scheme=scheme)
    for where in ("#/replay", "#/deck", "#/rules", "#/"):
        page.goto(where)
        page.wait_for_selector("h1")
        assert page.evaluate(CONTRAST) == []
    share_a_table(page)
    assert page.evaluate(CONTRAST) == []
    page.keyboard.press("Enter")
    page.wait_for_selector("button.pick:not(:disabled)")
    page.keyboard.press("c")
    page.wait_for_selector("#advice")
    assert page.evaluate(CONTRAST) == []


def test_script_in_names_and_records_stays_text(visitor, tmp_path):
    name, deck = "<i id=evil>Eve</i>", "<img id=evil src=x onerror=alert(1)>"
    page = visitor()
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.get_by_label("Your name").fill(name)
    start(page, players=10)
    assert name in page.inner_text(".seats")
    play_on(page)
    assert name in page.inner_text("[aria-label='The result']")
    page.get_by_role("link", name="Review the match").click()
    page.wait_for_selector("svg.graph", timeout=60_000)
    assert page.locator("#evil").count() == 0
    file = tmp_path / "games.jsonl"
    write_games(file, players=10)
    record = next(records.read_records(file))
    record["deck"]["name"] = record["match"]["id"] = deck
    for told in ({**record, "rules": deck}, {**record, "format": deck}, record):
        file.write_text(json.dumps(told))
        page.goto("#/replay")
        page.get_by_label("A file of records").set_input_files(file)
        page.wait_for_selector("#step" if told is record else "[role=alert]:not(:empty)")
        assert "<img" in page.inner_text("main")
        assert page.locator("#evil").count() == 0
        page.goto("#/")


def test_two_tabs_of_a_shared_device_live_through_a_restart(chromium, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "oxx_env", "serve", "--port", str(port), "--folder"]

    @contextlib.contextmanager
    def serving():
        with subprocess.Popen([*command, str(tmp_path)], stdout=subprocess.PIPE, text=True) as run:
            try:
                assert run.stdout.readline()
                yield run
            finally:
                run.kill()

    faults = []
    with contextlib.closing(chromium.new_context(base_url=f"http://127.0.0.1:{port}/")) as context:
        context.set_default_timeout(30_000)
        context.add_init_script(
            "if (location.origin !== 'null') localStorage.setItem('oxx.pace', '\"0\"')"
        )
        context.on("weberror", lambda error: faults.append(str(error.error)))
        with serving() as server:
            page = context.new_page()
            page.goto("")
            share_a_table(page)
            other = context.new_page()
            other.goto(page.url)
            for one in (page, other):
                one.wait_for_selector("#uncover.main")
                one.locator("#uncover").click()
                one.wait_for_selector("button.pick:not(:disabled)")
            anna = hand_of(page)
            assert hand_of(other) == anna
            page.locator("button.pick").first.click()
            for one in (page, other):  # both hide the hand before Ben's turn
                one.get_by_role("button", name="Show Ben's cards").wait_for()
                shows_no_card_of(one, anna)
            page.locator("#uncover").click()
            page.wait_for_selector("button.pick:not(:disabled)")
            ben = hand_of(page)
            server.kill()  # in mid-game, one hand open, Ben's tab and another one waiting
            for one in (page, other):
                wait_for_text(one, "body", "[Cc]onnection")
        with serving():
            for one in (page, other):
                wait_for_text(one, "body", "^(?![^]*[Cc]onnection)")
            shows_no_card_of(other, [*anna, *ben])
            assert hand_of(page) == ben  # as before the restart
            page.locator("button.pick:not(:disabled)").first.click()
            for one in (page, other):  # both go on without a reload
                wait_for_log(one)
            page.reload()
            page.wait_for_selector("#uncover, button.row")
            shown = set(numbers(page, "[data-card]"))
            # Of a hidden hand only the revealed card is on the page; the hand of a player who
            # chooses a row is open.
            open_hands = sum(len(shown & set(hand)) > 1 for hand in (anna, ben))
            assert open_hands <= bool(page.locator("button.row").count())
    assert not faults
