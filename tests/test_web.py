"""The server of `oxx serve`, asked as a browser would and as one should not."""

import asyncio
import contextlib
import itertools
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import urllib.request
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra `web` is not installed")
httpx = pytest.importorskip("httpx", reason="starlette's test client needs httpx")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of a successor that not every index has
    from starlette.testclient import TestClient, WebSocketDisconnect

# ruff: noqa: E402
from oxx_env import advice, cards, records
from oxx_env.commands import _cli, serve
from oxx_env.game.rules import NO_SEED, RULE_SETS
from oxx_env.game.scoring import direction
from oxx_env.web import coach, limits, rooms, storage
from oxx_env.web.app import MAX_LINE, STATIC, make_app
from oxx_env.web.errors import RequestError
from oxx_env.web.levels import bot_of, levels
from oxx_env.web.requests import MAX_BODY
from oxx_env.web.room import AWAY_S, GONE_S, Room
from oxx_env.web.server import TableServer, _answers
from oxx_env.web.setup import read_name
from oxx_env.web.tokens import hash_of, secret_deal

HUMAN, GREEDY = {"kind": "human"}, {"kind": "bot", "level": "greedy"}


def serving(folder, **options):
    """A server, to be used by `with` as an HTTP client of its own."""
    return TestClient(make_app(folder, **options), base_url="http://localhost")


def http_client(app, address="127.0.0.1", base_url="http://localhost"):
    """An asynchronous HTTP client with this address."""
    transport = httpx.ASGITransport(app, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url=base_url)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("games"), seed=1) as client:
        yield client


@pytest.fixture(scope="module")
def record(client):
    """The record of a game of ten."""
    player = sit(client, HUMAN, *[GREEDY] * 9)
    player.play()
    return player.records()[0]


@pytest.fixture(autouse=True)
def _decisions_of_bots_are_saved_at_once(monkeypatch):
    monkeypatch.setattr("oxx_env.web.server.SAVE_DELAY_S", 0.01)


class Player:
    """A person with a seat, or a watcher."""

    def __init__(self, client, made):
        self.client, self.id, self.seat = client, made["id"], made["seat"]
        self.token, self.url = made["token"], f"/api/tables/{made['id']}"
        self.headers = {"Authorization": f"Bearer {made['token']}"}

    @property
    def room(self):
        return self.client.app.state.server.rooms.get(self.id)

    @property
    def file(self):
        """The table's file."""
        return self.client.app.state.server.rooms.folder / "tables" / f"{self.id}.json"

    def get(self, path=""):
        return self.client.get(self.url + path, headers=self.headers)

    def post(self, path, **body):
        return self.client.post(self.url + path, headers=self.headers, json=body)

    def records(self):
        return [json.loads(line) for line in self.get("/record").text.splitlines()]

    def invites(self):
        """The invitations by seat."""
        seats = self.state()["seats"]
        return {index: seat["invite"] for index, seat in enumerate(seats) if "invite" in seat}

    def ask_to_join(self, invite, **body):
        return self.client.post(f"{self.url}/join", json={"invite": invite, **body})

    def state(self, query=""):
        answer = self.get(query)
        check(answer, 200)
        return answer.json()

    def my_turn(self):
        """The state as soon as this seat decides, or the match is over."""
        state = self.state()
        while not state["legal"] and not state["over"]:
            state = self.state(f"?version={state['version']}")
        return state

    def move(self, state, action):
        return self.post("/moves", turn=state["turn"], action=action)

    def play(self):
        """To the end, always the first legal action; the last state."""
        while not (state := self.my_turn())["over"]:
            assert self.move(state, state["legal"][0]).status_code == 200
        return state


def sit(client, *seats, **setup):
    answer = client.post("/api/tables", json={"seats": list(seats), **setup})
    assert answer.status_code == 201, answer.text
    return Player(client, answer.json())


def join(player, invite=None, **body):
    """A person uses an invitation, or the first one that `player` sees."""
    answer = player.ask_to_join(invite or player.state()["invite"], **body)
    assert answer.status_code == 201, answer.text
    return Player(player.client, answer.json())


def watch(player):
    return Player(player.client, {"id": player.id, "seat": None, "token": player.state()["watch"]})


def check(answer, status, words=""):
    """The status of an answer, and what its error says."""
    assert answer.status_code == status, answer.text
    assert words in answer.text


def wait_for(condition):
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("this did not happen in ten seconds")


def play_all(players, choose=lambda legal: legal[0], limit=300):
    """All play, each when it has to decide; the first player's last state."""
    for _ in range(limit):
        if (state := players[0].state())["over"]:
            return state
        for player in players:
            state = settled(player)
            if state["legal"]:
                assert player.move(state, choose(state["legal"])).status_code == 200
    raise AssertionError("the game does not end")


# --- playing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("players", [2, 5, 10])
def test_a_game_against_bots_is_played_to_its_end_and_is_a_valid_record(client, rules, players):
    player = sit(client, HUMAN, *[GREEDY] * (players - 1), rules=rules)
    state = player.play()
    (record,) = player.records()
    assert records.replay(record).scores == state["match"]["points"]
    assert state["winners"] == record["winners"]
    assert state["direction"] == direction(rules)
    file = player.file.parents[1] / "games" / f"{player.id}.jsonl"
    wait_for(lambda: file.exists() and file.read_text() == player.get("/record").text)


def test_every_level_plays(client):
    names = [level.name for level in levels()]
    assert names == ["random", "greedy", "careful", "champion", "search"]
    player = sit(client, HUMAN, *({"kind": "bot", "level": name} for name in names))
    assert player.play()["over"]


def test_every_level_answers_the_same_once_more(client):
    player = sit(client, HUMAN, GREEDY)
    state = player.my_turn()
    room = player.room
    for level in levels():

        def answer(name=level.name):
            return int(bot_of(name).act(room.view(0), room.generator(0, state["turn"])))

        first = answer()
        with ThreadPoolExecutor(1) as another:  # where another bot of that level answers
            assert another.submit(answer).result() == first
        assert answer() == first


def test_a_match_adds_up_and_shows_its_records_only_when_it_is_over(client):
    player = sit(client, HUMAN, *[GREEDY] * 8, games=2)
    first = player.state()
    while (state := player.my_turn())["match"]["game"] == 1:
        check(player.get("/record"), 409)
        player.move(state, state["legal"][0])
    last = player.play()
    games = player.records()
    assert [(one["match"]["id"], one["match"]["game"]) for one in games] == [
        (player.id, 1), (player.id, 2),
    ]  # fmt: skip
    assert last["match"]["points"] == np.add(*(one["scores"] for one in games)).tolist()
    events = player.state("?since=0")["events"]
    kinds = [event["kind"] for event in events]
    assert [kind for kind in kinds if kind in ("deal", "end")] == ["deal", "end"] * 2
    assert first["events"][0] == events[0]


def test_events_tell_the_record(client):
    player = sit(client, HUMAN, GREEDY, GREEDY)
    player.play()
    record = player.records()[0]
    events = player.state()["events"]
    assert events[0]["rows"] == record["rows"]
    placed = [event for event in events if event["kind"] == "place"]
    assert [[e["seat"], e["number"], e["row"], e["taken"]] for e in placed] == [
        placement for one in record["rounds"] for placement in one["placements"]
    ]
    for event in placed:
        assert str(event["number"]) in event["text"]
        assert bool(event["taken"]) == ("takes row" in event["text"])


def test_an_own_deck_is_played_and_named(client):
    deck = cards.random_deck("balanced", np.random.default_rng(5)).tolist()
    player = sit(client, HUMAN, *[GREEDY] * 9, deck={"name": "my box", "cards": deck})
    assert player.state()["cards"] == deck
    player.play()
    record = player.records()[0]
    assert record["deck"] == {"name": "my box", "cards": deck}
    records.replay(record)


# --- seats and secrets ----------------------------------------------------------------------------


def numbers_in(data):
    """All integers anywhere in JSON."""
    if isinstance(data, dict | list):
        return {n for part in (data.values() if isinstance(data, dict) else data)
                for n in numbers_in(part)}  # fmt: skip
    return {data} if isinstance(data, int) and not isinstance(data, bool) else set()


def check_hides(state, room):
    """A state holds no card that its seat, or a watcher, does not know."""
    game, own = room.table.game, state["seat"]
    others = [seat for seat in range(len(room.seats)) if seat != own]
    hidden = {int(n) for seat in others for n in game["hands"][seat][: game["hand_sizes"][seat]]}
    hidden -= {n for hand in state["known_hand"] for n in hand}
    if state["phase"] == "card":
        hidden |= {int(game["picks"][seat]) for seat in others} - {0}
    shown = [e["cards"] for e in state["events"] if e["kind"] == "reveal"]
    shown += [state[key] for key in ("hand", "picked", "known_hand", "returned", "card")]
    assert not numbers_in(shown) & hidden
    assert "seed" not in json.dumps(state) and "draw_piles" not in json.dumps(state)


def test_no_seat_is_sent_another_ones_hand(client):
    anna = sit(client, HUMAN, HUMAN, GREEDY)
    ben, looks = join(anna), 0
    while not anna.room.table.over:
        for player in (anna, ben):
            state = player.state()
            check_hides(state, anna.room)
            looks += 1
            if state["legal"] and player.state()["turn"] == state["turn"]:
                player.move(state, state["legal"][-1])
    assert looks > 40


def test_two_deals_that_differ_in_what_a_seat_cannot_know_look_the_same_to_it(client):
    player = sit(client, HUMAN, GREEDY)
    wait_for(lambda: not player.room.thinking)
    before, game = player.state(), player.room.table.games[0]
    dealt = {*game["piles"].tolist(), *game["hands"].flat, *game["rows"].flat}
    game["hands"][1][:4] = [n for n in range(1, 111) if n not in dealt][:4]
    assert player.state() == before


def test_a_token_holds_one_seat_and_no_other(client):
    anna = sit(client, {"kind": "human", "name": "Anna"}, HUMAN)
    invite = anna.state()["invite"]
    ben = join(anna, invite, name="Ben")
    assert (anna.state()["seat"], ben.state()["seat"]) == (0, 1)
    assert [seat["name"] for seat in ben.state()["seats"]] == ["Anna", "Ben"]
    assert anna.state()["invite"] is None  # no seat is free
    assert anna.ask_to_join(invite).status_code == 409
    state = anna.state()
    assert anna.move(state, state["legal"][0]).status_code == 200
    assert ben.state()["turn"] == 0 and len(ben.state()["hand"]) == 4
    assert anna.state()["waits_for"] == [1]


def test_the_maker_of_a_table_gets_a_token_for_each_seat_at_the_same_device(client):
    here = {"kind": "human", "name": "Ben", "here": True}
    made = client.post("/api/tables", json={"seats": [HUMAN, GREEDY, here, HUMAN]}).json()
    assert [one["seat"] for one in made["seats"]] == [0, 2]
    assert (made["seat"], made["token"]) == (0, made["seats"][0]["token"])
    anna, ben = (Player(client, {"id": made["id"], **one}) for one in made["seats"])
    assert (anna.state()["seat"], ben.state()["seat"]) == (0, 2)
    assert [seat["free"] for seat in ben.state()["seats"]] == [False, False, False, True]
    assert not set(anna.state()["hand"]) & set(ben.state()["hand"])
    assert ben.get("/coach").status_code == 200
    assert anna.get("/review?seat=2").status_code == 403  # one device, but not one seat
    state = anna.state()
    assert anna.move(state, 0).status_code == 200
    assert ben.state()["picked"] is None


def test_no_deal_of_a_table_follows_from_another_one(tmp_path):
    piles = []
    for folder in ("a", "b"):
        with serving(tmp_path / folder) as client:
            player = sit(client, HUMAN, *[GREEDY] * 8, games=2)
            room = player.room
            while (state := player.my_turn())["match"]["game"] == 1:
                assert room.table.game["seed"] == NO_SEED
                player.move(state, state["legal"][0])
            before = player.state()
        with serving(tmp_path / folder) as client:
            player.client = client  # the deals of a match survive a restart
            assert player.my_turn()["hand"] == before["hand"]
            player.play()
            games = player.records()
        for number, game in enumerate(games, start=1):
            assert records.replay(game).seed is None
            assert (game["draw_piles"], game["rows"]) == secret_deal(room.secret, 9, number)
        assert len(room.secret) == 32  # 256 bits
        piles += [game["draw_piles"] for game in games]
    assert all(one != other for one, other in itertools.combinations(piles, 2))


def test_every_bit_of_the_secret_and_every_game_counts_in_a_deal():
    secret = bytes(range(32))
    number = int.from_bytes(secret, "big")
    near = [(number ^ 1 << bit).to_bytes(32, "big") for bit in (0, 255)]
    deals = [secret_deal(one, 10, game) for one in (secret, *near) for game in (1, 2)]
    assert all(one != other for one, other in itertools.combinations(deals, 2))
    for piles, rows in deals:
        assert len({*rows, *(n for pile in piles for n in pile)}) == 85
    places = [piles[0].index(min(piles[0])) for piles, _ in deals]  # no order of numbers is kept
    assert len(set(places)) > 1
    first = [secret_deal(i.to_bytes(32, "big"), 10, 1)[0][0][0] for i in range(2200)]
    counts = np.bincount(first, minlength=111)[1:]
    assert counts.min() >= 5 and counts.max() <= 45  # 20 of each on average: five deviations


def test_only_a_seed_makes_deals_that_can_be_foreseen(tmp_path):
    def hands(folder, **seed):
        with serving(tmp_path / folder, **seed) as client:
            return [sit(client, HUMAN, HUMAN).state()["hand"] for _ in range(3)]

    assert hands("a", seed=5) == hands("b", seed=5) != hands("c", seed=6)
    assert hands("d") != hands("e")
    assert serve.Run().seed is None


@pytest.mark.skipif(os.name == "nt", reason="other rights there")
def test_only_the_user_who_runs_the_server_can_read_its_files(tmp_path):
    (tmp_path / "new" / "tables").mkdir(parents=True)  # made by hand
    before = os.umask(0o022)
    try:
        with serving(tmp_path / "new") as client:
            player = sit(client, HUMAN, *[GREEDY] * 9)
            player.play()
            wait_for(lambda: (tmp_path / "new" / "games" / f"{player.id}.jsonl").exists())
        make_app(tmp_path / "fresh")
    finally:
        os.umask(before)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o700
    for name in ("tables", "games"):
        assert (tmp_path / "new" / name).stat().st_mode & 0o777 == 0o700
        for file in (tmp_path / "new" / name).iterdir():
            assert file.stat().st_mode & 0o777 == 0o600


def test_tokens_and_their_seats_are_not_in_the_files(client):
    player = sit(client, HUMAN, GREEDY)
    text = player.file.read_text()
    assert player.token not in text
    assert hash_of(player.token) in text


def test_a_free_seat_can_be_given_to_a_bot(client):
    player = sit(client, HUMAN, HUMAN)
    check(player.post("/seats", seat=0, level="greedy"), 409)
    check(player.post("/seats", seat=9, level="greedy"), 422)
    check(player.post("/seats", seat=1, level="nobody"), 422)
    assert player.state()["seats"][1]["free"]
    assert player.post("/seats", seat=1, level="greedy").status_code == 200
    assert player.play()["over"]


def test_waiting_players_and_watchers_are_answered_when_the_other_seat_decides(client):
    anna = sit(client, HUMAN, HUMAN)
    ben = join(anna)
    state = anna.state()
    with ThreadPoolExecutor(2) as tabs:
        query = f"?version={state['version']}&since=0"
        waiting = [tabs.submit(one.state, query) for one in (anna, watch(anna))]
        time.sleep(0.2)
        assert not any(one.done() for one in waiting)
        ben.move(ben.state(), 0)
        for one in waiting:
            assert one.result(10)["version"] > state["version"]
            assert one.result()["waits_for"] == [0]


# --- people ---------------------------------------------------------------------------------------


def key(letter):
    return {"Idempotency-Key": letter * 20}


def test_an_invitation_brings_one_person_to_one_seat(client):
    anna = sit(client, HUMAN, HUMAN, HUMAN)
    invites = anna.invites()
    assert set(invites) == {1, 2} and len(set(invites.values())) == 2
    carl = join(anna, invites[2], name="Carl")
    assert carl.seat == 2 and anna.invites() == {1: invites[1]}
    check(anna.ask_to_join(invites[2], name="Mallory"), 409, "has been used")
    assert [seat["free"] for seat in anna.state()["seats"]] == [False, True, False]
    # Only the host can invite.
    assert carl.invites() == {} and carl.state()["invite"] is None


def test_a_person_has_one_seat_unless_two_are_asked_for(client):
    anna = sit(client, HUMAN, HUMAN, HUMAN, HUMAN)
    invites = anna.invites()
    person = {"person": "b" * 22}
    ben = join(anna, invites[1], **person)
    again = join(anna, invites[1], **person)  # a double click
    other = join(anna, invites[2], **person)  # another link that was sent to the same one
    assert {one.token for one in (ben, again, other)} == {ben.token}
    assert [seat["free"] for seat in anna.state()["seats"]] == [False, False, True, True]
    bea = join(anna, invites[2], **person, another=True)
    twice = join(anna, invites[2], **person, another=True)
    assert (bea.seat, twice.token) == (2, bea.token) and bea.token != ben.token
    assert bea.state()["seat"] == 2 and ben.state()["seat"] == 1
    carl = join(anna, invites[3], person="c" * 22)
    assert carl.seat == 3
    text = anna.file.read_text()
    assert "bbbb" not in text and ben.token not in text
    for odd in ("short", "x" * 65, "ü" * 20, 3, ["b" * 22]):
        assert anna.ask_to_join("x", person=odd).status_code == 422


def test_the_host_does_not_sit_down_twice_with_an_own_invitation(client):
    anna = sit(client, HUMAN, HUMAN, person="a" * 22)
    back = join(anna, person="a" * 22)
    assert (back.seat, back.token) == (0, anna.token)
    assert anna.state()["seats"][1]["free"]


def test_requests_sent_twice_count_once_also_across_a_restart(tmp_path):
    body = {"seats": [HUMAN, HUMAN, HUMAN]}
    with serving(tmp_path) as client:

        def ask(path, body, name, headers=None):
            return client.post(path, json=body, headers={**(headers or {}), **key(name)})

        made = ask("/api/tables", body, "t")
        table = f"/api/tables/{made.json()['id']}"
        joins = [ask(f"{table}/join", {"invite": made.json()["invite"]}, "j") for _ in range(2)]
        anna, ben = Player(client, made.json()), Player(client, joins[0].json())
        move = {"turn": 0, "action": 1}
        moves = [ask(f"{table}/moves", move, "m", anna.headers) for _ in range(2)]
        free = {"seat": 1, "free": True}
        frees = [ask(f"{table}/seats", free, "f", anna.headers) for _ in range(2)]
        carl = join(anna, anna.invites()[1], person="c" * 22)
        late = ask(f"{table}/seats", free, "f", anna.headers)  # must not put Carl out
        before = [ask("/api/tables", body, "t"), *joins, *moves, *frees, late]
        assert [one.status_code for one in before] == [201] * 3 + [200] * 5
        assert before[0].json()["id"] == made.json()["id"]
        assert before[0].json()["token"] == anna.token
        assert joins[1].json() == joins[0].json()
        assert len(list((tmp_path / "tables").iterdir())) == 1
        assert anna.state()["turn"] == 1
        # The same key with another request is refused.
        for path, other, name, headers in (
            ("/api/tables", {"seats": [HUMAN, GREEDY]}, "t", {}),
            (f"{table}/moves", {"turn": 0, "action": 2}, "m", anna.headers),
            (f"{table}/moves", move, "m", carl.headers),
        ):
            check(ask(path, other, name, headers), 422, "another request")
        check(client.post("/api/tables", json=body, headers=key("!")), 422)
        assert ask(f"{table}/moves", move, "n", anna.headers).status_code == 409
    with serving(tmp_path) as client:
        made_again = ask("/api/tables", body, "t")
        assert made_again.json()["token"] == anna.token
        assert ask(f"{table}/moves", move, "m", anna.headers).json()["turn"] == 1
        assert ask(f"{table}/seats", free, "f", anna.headers).status_code == 200
        anna.client = carl.client = ben.client = client
        assert carl.state()["seat"] == 1
        check(ben.get(), 410)
        assert len(list((tmp_path / "tables").iterdir())) == 1


def test_the_last_requests_of_a_table_are_recognised(client, monkeypatch):
    monkeypatch.setattr("oxx_env.web.room.MAX_REQUEST_KEYS", 3)
    anna = sit(client, HUMAN, HUMAN)
    room = anna.room
    for letter in "abcdefgh":
        headers = {**anna.headers, **key(letter)}
        answer = client.post(f"{anna.url}/seats", json={"seat": 1, "free": True}, headers=headers)
        assert answer.status_code == 200
    assert len(room.done) == 3 and room.seats[1].handed == 8
    assert Room.from_dict(json.loads(room.to_text())).done == room.done


def go_away(player, seconds):
    """No request has come from the seat for so long."""
    player.room._seen[player.seat] -= seconds


def test_a_person_who_is_away_is_shown_as_such_and_gets_the_seat_back(client):
    anna = sit(client, HUMAN, HUMAN, GREEDY)
    ben = join(anna, name="Ben")
    assert [seat["away"] for seat in anna.state()["seats"]] == [False] * 3
    go_away(ben, AWAY_S)
    version = anna.state()["version"]
    assert [seat["away"] for seat in anna.state()["seats"]] == [False, True, False]
    assert ben.state()["seats"][1] == {
        "name": "Ben", "kind": "human", "level": "", "free": False, "away": False,
        "may_change": True,
    }  # fmt: skip
    assert anna.state()["version"] > version  # waiting pages learn that Ben is back
    # Freed while Ben is away, and not yet taken: Ben gets it back.
    go_away(ben, AWAY_S)
    assert anna.post("/seats", seat=1, free=True).status_code == 200
    seat = anna.state()["seats"][1]
    assert (seat["free"], seat["name"]) == (True, "Ben")
    invite = seat["invite"]
    assert ben.state()["seat"] == 1 and anna.state()["invite"] is None
    assert anna.ask_to_join(invite).status_code == 409
    # Taken meanwhile: the answer says so, and Ben may watch.
    go_away(ben, AWAY_S)
    anna.post("/seats", seat=1, free=True)
    carl = join(anna)
    assert (carl.seat, carl.state()["seats"][1]["name"]) == (1, "Player 2")
    for answer in (ben.get(), ben.post("/moves", turn=0, action=0)):
        check(answer, 410, '"your seat was given to Player 2; you may watch"')
    ben.headers = {"Authorization": f"Bearer {answer.json()['watch']}"}
    assert ben.state()["seat"] is None


def test_a_person_who_loses_the_seat_while_present_does_not_get_it_back(client):
    anna = sit(client, HUMAN, HUMAN)
    invite = anna.state()["invite"]
    ben = join(anna, invite, person="b" * 22, name="Ben")
    assert anna.post("/seats", seat=1, free=True).status_code == 200
    check(ben.get(), 410, "was freed")
    check(anna.ask_to_join(invite, person="b" * 22), 410, "was freed")
    assert anna.state()["seats"][1]["name"] == "Player 2"
    again = join(anna, person="b" * 22, name="Ben")
    assert again.token != ben.token and again.state()["seat"] == 1


def test_a_seat_that_blocks_the_table_is_given_to_a_bot_which_plays_on(client):
    anna = sit(client, HUMAN, HUMAN, HUMAN)
    ben, carl = (join(anna, invite) for invite in anna.invites().values())
    state = anna.state()
    anna.move(state, 0)
    carl.move(carl.state(), 0)
    assert anna.state()["waits_for"] == [1]
    # A guest may change only the seat of a person who has been away for long.
    check(carl.post("/seats", seat=1, level="greedy"), 403)
    go_away(ben, AWAY_S)
    check(carl.post("/seats", seat=1, free=True), 403)
    assert [seat["may_change"] for seat in carl.state()["seats"]] == [False, False, True]
    assert [seat["may_change"] for seat in anna.state()["seats"]] == [True] * 3
    assert anna.post("/seats", seat=1, level="greedy").status_code == 200
    wait_for(lambda: 1 not in anna.state()["waits_for"])
    state = anna.state()
    assert {k: state["seats"][1][k] for k in ("name", "kind")} == {"name": "Greedy", "kind": "bot"}
    assert ben.get().json()["error"] == "your seat was given to Greedy; you may watch"
    go_away(anna, GONE_S)
    assert carl.post("/seats", seat=0, level="greedy").status_code == 200
    check(anna.get(), 410)
    assert carl.state()["seats"][0]["name"] == "Greedy 2"
    # The host has gone: the first person takes over, and may invite Ben again.
    assert carl.post("/seats", seat=1, free=True).status_code == 200
    dora = join(carl, name="Dora")
    assert dora.seat == 1 and dora.state()["hand"]
    play_all([carl, dora])
    records.replay(carl.records()[0])


def test_a_bot_plays_on_for_a_person_who_leaves(client):
    anna = sit(client, HUMAN, HUMAN, GREEDY)
    ben = join(anna)
    check(ben.post("/seats", seat=1, level="greedy"), 409)
    check(ben.post("/seats", seat=0, level="greedy", leave=True), 422)
    assert ben.post("/seats", seat=1, level="greedy", leave=True).status_code == 200
    check(ben.get(), 410)
    assert anna.play()["over"]
    check(anna.post("/seats", seat=1, free=True), 409, "the match is over")
    for body in ({"seat": 1}, {"seat": 1, "level": "greedy", "free": True}, {"seat": 1, "free": 1},
                 {"seat": 9, "free": True}, {"seat": 1, "free": True, "leave": "yes"}):  # fmt: skip
        check(anna.post("/seats", **body), 422)


def test_a_bots_answer_that_comes_after_its_seat_was_freed_is_not_played(client, monkeypatch):
    asked, go_on = threading.Event(), threading.Event()

    def slowly(questions):
        asked.set()
        assert go_on.wait(30)
        return _answers(questions)

    monkeypatch.setattr("oxx_env.web.server._answers", slowly)
    anna = sit(client, HUMAN, GREEDY, GREEDY)
    assert asked.wait(30)
    assert anna.post("/seats", seat=1, free=True).status_code == 200
    go_on.set()
    room = anna.room
    wait_for(lambda: not room.thinking)
    assert room.turn(1) == 0 and room.turn(2) == 1
    ben = join(anna)
    assert ben.move(ben.state(), 0).status_code == 200


def test_watchers_see_no_hand_and_change_nothing(client):
    anna = sit(client, HUMAN, HUMAN, GREEDY, rules="positive")
    ben = join(anna)
    watcher, room, looks = watch(ben), anna.room, 0
    while not room.table.over:
        state = settled(watcher)
        check_hides(state, room)
        assert (state["seat"], state["hand"], state["legal"]) == (None, [], [])
        assert state["invite"] is None and watcher.invites() == {}
        looks += 1
        if looks == 5:
            before = room.changes
            for answer in (
                watcher.post("/moves", turn=0, action=0),
                watcher.post("/seats", seat=1, free=True),
                watcher.get("/coach"),
                watcher.get("/review?seat=0"),
            ):
                check(answer, 403)
            check(watcher.get("/record"), 409)
            check(watcher.get("/review"), 422)
            assert room.changes == before
        for player in (anna, ben):
            state = player.state()
            if state["legal"]:
                player.move(state, state["legal"][-1])
    assert looks > 5
    assert watcher.state()["over"] and watcher.get("/record").status_code == 200
    assert watcher.token not in anna.file.read_text()


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("Anna", "Anna"),
        ("  An\u200bna\u202e ", "Anna"),
        ("\uff21nna", "Anna"),  # full width
        ("e\u0301" + "\u0301" * 30 + "ve", "\u00e9" + "\u0301" * 3 + "ve"),
        ("\u0301Eve", "Eve"),
        ("\U0001f469\u200d\U0001f680", "\U0001f469\U0001f680"),
        ("\u05d3\u05e0\u05d4", "\u05d3\u05e0\u05d4"),
        *[
            (blank, "")
            for blank in ("", " ", "\u00a0\u2003", "\u200b", "\u3164", "\u2800", "\ufe0f")
        ],
    ],
)
def test_a_name_is_what_can_be_seen_of_it(sent, shown):
    assert read_name(sent) == shown


@pytest.mark.parametrize(
    "name",
    ["anna", "A N N A", "\u0410nn\u0430", "Ann\u03b1", "A\u200bnna", "\uff21nna", "greedy",
     "Player 3", "P1ayer 3", "PIayer 3"],
)  # fmt: skip
def test_a_name_that_looks_like_another_one_is_refused(client, name):
    anna = sit(client, {"kind": "human", "name": "Anna"}, HUMAN, HUMAN, GREEDY)
    check(anna.ask_to_join(anna.invites()[1], name=name), 422, "at this table already")
    two = [{"kind": "human", "name": name, "here": True} for name in ("Anna", "Ann\u0430")]
    check(client.post("/api/tables", json={"seats": two}), 422)
    blank = join(anna, anna.invites()[1], name="\u200b\u3164")
    assert blank.state()["seats"][1]["name"] == "Player 2"
    assert join(anna, anna.invites()[2], name="Hanna").state()["seats"][2]["name"] == "Hanna"


def test_seats_without_a_name_get_one_unlike_all_others(client):
    anna = sit(client, {"kind": "human", "name": "player 2"}, HUMAN, GREEDY, GREEDY,
               {"kind": "human", "name": "Greedy"})  # fmt: skip
    assert [seat["name"] for seat in anna.state()["seats"]] == [
        "player 2", "Player 2 2", "Greedy 2", "Greedy 3", "Greedy",
    ]  # fmt: skip


# --- what must be refused -------------------------------------------------------------------------


@pytest.fixture
def seat(client):
    return sit(client, HUMAN, HUMAN, GREEDY)


def refused(player, status, ask, *args, **options):
    """`ask(*args, **options)` gets this status and a message, and changes nothing at the table."""
    before = player.state(), player.file.read_text()
    answer = ask(*args, **options)
    assert (player.state(), player.file.read_text()) == before
    check(answer, status)
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json()["error"]


def settled(player):
    """The state when the bots have decided all they can."""
    state = player.state()
    while any(state["seats"][seat]["kind"] == "bot" for seat in state["waits_for"]):
        state = player.state(f"?version={state['version']}")
    wait_for(lambda: player.room.saved == player.room.changes)
    return state


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Basic abc", 401),
        ("Bearer ", 401),
        ("Bearer wrong", 403),
        ("own but one", 403),
        (("Bearer " + "\xe9" * 10).encode("latin-1"), 403),
    ],
)
def test_wrong_tokens_are_refused(client, seat, header, status):
    settled(seat)
    header = f"Bearer {seat.token[:-1]}" if header == "own but one" else header
    headers = {"Authorization": header} if header else {}
    for path in ("", "/coach", "/review", "/record"):
        refused(seat, status, client.get, seat.url + path, headers=headers)
    move = {"turn": 0, "action": 0}
    refused(seat, status, client.post, f"{seat.url}/moves", json=move, headers=headers)


def test_unknown_tables_are_not_found(client, seat):
    settled(seat)
    for name in ("a" * 16, "x", "..%2F..%2Fetc%2Fpasswd", "A" * 16, "%00", "é"):
        refused(seat, 404, client.get, f"/api/tables/{name}", headers=seat.headers)
    for path in ("/api/nothing", "/card/0-100000.svg", "/card/5-800000.svg", "/../app.py"):
        check(client.get(path), 404)
    check(client.delete(seat.url), 405)


def test_illegal_and_repeated_moves_change_nothing(client, seat):
    state = settled(seat)
    for action in (4, 8, 9, 10, 10**8):
        refused(seat, 422, seat.move, state, action)
    for body in [
        {"turn": 0},
        {"action": 0},
        {"turn": 0, "action": "0"},
        {"turn": 0, "action": True},
        {"turn": 0, "action": 0.0},
        {"turn": -1, "action": 0},
        {"turn": 0, "action": 10**30},
        {"turn": 0, "action": None},
        {"turn": 0, "action": 0, "seat": 1},
    ]:
        refused(seat, 422, seat.post, "/moves", **body)
    refused(seat, 409, seat.post, "/moves", turn=1, action=0)  # too early
    check(seat.move(state, 0), 200)
    refused(seat, 409, seat.move, state, 0)  # sent again
    refused(seat, 409, seat.post, "/moves", turn=1, action=0)  # not its turn


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"null", "application/json", 400),
        (b'{"turn": NaN, "action": 0}', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 50_000, "application/json", 400),
        (b'{"turn": 0, "action": ' + b"9" * 5000 + b"}", "application/json", 400),
        (b'{"turn": 0, "action": 0, "\\ud800": 0}', "application/json", 422),
        (b'{"turn": 0, "action": 0}', "text/plain", 415),
        (b'{"turn": 0, "action": 0}', "", 415),
        (b"turn=0&action=0", "application/x-www-form-urlencoded", 415),
        (b'{"turn": 0, "action": 0}' + b" " * MAX_BODY, "application/json", 413),
    ],
)
def test_malformed_and_oversized_requests_change_nothing(client, seat, body, kind, status):
    settled(seat)
    headers = {**seat.headers, "Content-Type": kind}
    for content in (body, iter([body[:10], body[10:]])):  # the second has no Content-Length
        refused(seat, status, client.post, f"{seat.url}/moves", content=content, headers=headers)


@pytest.mark.parametrize(
    "setup",
    [
        {},
        *[
            {"seats": seats}
            for seats in (
                [],
                [HUMAN],
                [HUMAN] * 11,
                [GREEDY, GREEDY],
                [HUMAN, {"kind": "bot", "level": "cheat"}],
                [HUMAN, {"kind": "bot", "level": "policy:/etc"}],
                [HUMAN, {"kind": "ghost"}],
                [HUMAN, 3],
                [{"kind": "human", "name": "x" * 21}, GREEDY],
                [{"kind": "human", "name": "a\x00b"}, GREEDY],
                [{"kind": "human", "token": "mine"}, GREEDY],
                [HUMAN, {"kind": "human", "here": 1}],
                [HUMAN, {**GREEDY, "here": True}],
            )
        ],
        *[
            {"seats": [HUMAN, GREEDY], key: value}
            for key, value in (
                ("rules", "chess"),
                ("rules", ["base"]),
                ("games", 0),
                ("games", 10**9),
                ("coach", "yes"),
                ("seed", 4),
                ("deck", "/etc/passwd"),
                ("deck", "./balanced"),
                ("deck", {"name": "x", "cards": []}),
                ("deck", {"name": "x", "cards": "balanced"}),
                ("deck", {"name": "../x", "cards": [[1] * 6] * 110}),
                ("deck", {"name": "x", "cards": [[0] * 6] * 110}),
                ("deck", {"name": "x", "cards": [[8] * 6] * 110}),
            )
        ],
    ],
)
def test_a_table_that_cannot_be_is_refused(client, setup):
    before = set(client.app.state.server.rooms.rooms)
    answer = client.post("/api/tables", json=setup)
    assert answer.status_code == 422 and answer.json()["error"]
    assert set(client.app.state.server.rooms.rooms) == before


def test_wrong_invitations_are_refused(client, seat):
    settled(seat)
    for status, body in (
        (403, {"invite": "x"}),
        (403, {"invite": "é"}),
        (422, {}),
        (422, {"invite": 3}),
    ):
        refused(seat, status, client.post, f"{seat.url}/join", json=body)


def test_only_the_servers_own_names_are_answered(client):
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        check(client.get("/api/info", headers={"Host": host}), 421)
    for host in ("localhost", "localhost:8000", "127.0.0.1:9", "[::1]:80"):
        check(client.get("/api/info", headers={"Host": host}), 200)


def test_the_page_loads_nothing_from_elsewhere(client):
    answer = client.get("/")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    names = re.findall(r'(?:src|href)="([^"#]+)"', answer.text)
    assert "main.js" in names
    for name in names:
        assert client.get(f"/{name}").status_code == 200
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        assert "http://" not in text and "https://" not in text, file.name


def test_the_page_gets_colors_letters_and_limits_from_the_server(client):
    info = client.get("/api/info").json()
    assert "".join(info["letters"]) == cards.LETTERS and tuple(info["colors"]) == cards.COLORS
    assert (info["cards"], info["errors"], info["max_file"]) == (110, advice.ERRORS, 8 << 20)
    rows = {one["name"]: one["full_row"] for one in info["rules"]}
    assert rows == {"base": 5, "positive": 5, "color": None, "color+positive": None}
    for file in STATIC.glob("*.js"):
        text = file.read_text(encoding="utf-8")
        assert cards.LETTERS not in text and not re.search(r"\b110\b|\bblack\b.*white", text)


def test_pages_of_other_sites_can_neither_play_nor_read(client, seat):
    settled(seat)
    for sent in (
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:9"},  # another server of this machine
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ):
        headers, move = {**seat.headers, **sent}, {"turn": 0, "action": 0}
        refused(seat, 403, client.get, seat.url, headers=headers)
        refused(seat, 403, client.post, f"{seat.url}/moves", json=move, headers=headers)
        for path in ("/api/tables", "/api/replay", "/api/review?seat=0", "/api/deck"):
            answer = client.post(path, headers=headers, json={"seats": [HUMAN, HUMAN]})
            check(answer, 403)
            assert "access-control-allow-origin" not in answer.headers
    own = {**seat.headers, "Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    check(client.get(seat.url, headers=own), 200)
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    check(client.get("/", headers=link), 200)
    preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    check(client.options(f"{seat.url}/moves", headers=preflight), 403)


def test_there_are_no_web_sockets(client):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/info"):
        pass


VALUES = (
    None, True, -1, 0, 3, 1e308, 10**40, "", "x", "\ud800", "\u202e<b>", "\x00", "é" * 50,
    [], [[]], [0] * 200, {}, {"\ud800": 1}, {"kind": "human"}, {"kind": "bot", "level": []},
    {"name": "x", "cards": [[1] * 6] * 110}, [{"kind": "human"}] * 2, [[[[[[0]]]]]],
)  # fmt: skip


def test_random_values_cause_no_error_in_the_server_and_change_no_table(client, seat):
    settled(seat)
    before = seat.state()
    rng = np.random.default_rng(3)
    url = seat.url
    keys = {
        f"{url}/moves": ("turn", "action"),
        f"{url}/seats": ("seat", "level", "free", "leave"),
        f"{url}/join": ("invite", "name", "person", "another"),
        "/api/tables": ("rules", "deck", "games", "coach", "seats", "person"),
        "/api/deck": ("cards", "csv"),
        "/api/replay": ("format", "rules", "deck", "players", "match", "rounds"),
        "/api/review?seat=0": ("format", "rules", "deck", "players", "match", "rounds"),
    }
    headers = {**seat.headers, "Content-Type": "application/json"}
    for path, known in keys.items():
        for _ in range(40):
            result = {key: VALUES[rng.integers(len(VALUES))] for key in (*known, "\ud800")}
            for key in rng.permutation([*result])[: rng.integers(3)]:
                del result[key]
            if "format" in known:
                result["format"] = records.FORMAT
            if path.endswith("/moves"):
                result["\ud800"] = 0  # so that none is a legal move
            answer = client.post(path, content=json.dumps(result), headers=headers)
            assert answer.status_code in (201, 400, 403, 422), answer.text
            answer.json()
    for name in ("since", "version", "seat"):
        for value in ("-1", "x", "9" * 15, "9" * 16, "²", "", "0x1"):
            for path in ("", "/review"):
                answer = client.get(f"{url}{path}?{name}={value}", headers=seat.headers)
                assert answer.status_code in (200, 403, 422), answer.text
    assert seat.state() == before


def test_of_the_same_move_from_many_tabs_one_counts(client, seat):
    ben = join(seat)
    settled(seat)
    for player in (seat, ben, seat, ben):
        state = settled(player)
        if not state["legal"]:
            continue
        with ThreadPoolExecutor(8) as tabs:
            actions = [state["legal"][i % len(state["legal"])] for i in range(8)]
            answers = [*tabs.map(lambda a, p=player, s=state: p.move(s, a), actions)]
        assert sorted(one.status_code for one in answers) == [200] + [409] * 7
        assert player.state()["turn"] == state["turn"] + 1


def test_of_simultaneous_requests_for_a_seat_one_counts(client):
    anna = sit(client, HUMAN, HUMAN, HUMAN)
    with ThreadPoolExecutor(6) as people:
        answers = [*people.map(anna.ask_to_join, [*anna.invites().values()] * 3)]
    assert sorted(one.status_code for one in answers) == [201] * 2 + [409] * 4
    taken = [one.json()["seat"] for one in answers if one.status_code == 201]
    assert sorted(taken) == [1, 2]


def test_a_slow_move_is_played_at_the_table_as_it_is_when_the_move_is_complete(tmp_path):
    app = make_app(tmp_path, seed=3)

    async def play():
        async with http_client(app) as asked:
            here = {"kind": "human", "here": True}
            made = (await asked.post("/api/tables", json={"seats": [here, here]})).json()
            url = f"/api/tables/{made['id']}"
            first, second = (
                {"Authorization": f"Bearer {one['token']}", "Content-Type": "application/json"}
                for one in made["seats"]
            )

            async def slowly():
                yield b'{"turn": 0, '
                app.state.server.rooms.rooms.clear()  # as if other tables had needed the memory
                move = {"turn": 0, "action": 1}
                assert (await asked.post(f"{url}/moves", headers=second, json=move)).is_success
                yield b'"action": 0}'

            answer = await asked.post(f"{url}/moves", headers=first, content=slowly())
            assert answer.json()["phase"] != "card" or answer.json()["round"] == 2
            room = app.state.server.rooms.get(made["id"])
            assert len(room.table.decisions) >= 2  # neither move is lost
        await app.state.server.close()

    asyncio.run(play())


def test_an_error_of_a_bot_is_reported_without_its_cards(client, monkeypatch, capsys):
    def fail(level):
        raise ValueError("hand [1, 2, 3, 4]")

    monkeypatch.setattr("oxx_env.web.server.bot_of", fail)
    player = sit(client, HUMAN, GREEDY)
    wait_for(lambda: player.state()["trouble"])
    trouble = player.state()["trouble"]
    assert trouble.startswith("a bot cannot go on") and "hand" not in trouble
    assert "hand [1, 2, 3, 4]" in capsys.readouterr().err


@pytest.mark.parametrize("call", [1, 2, 9])
def test_a_table_goes_on_after_an_error_of_a_bot(tmp_path, monkeypatch, capsys, call):
    """A bot that raises has decided nothing: when it decides again, the game ends the same."""

    async def play(folder, left):
        def answers(questions):
            nonlocal left
            actions = []
            for level, view, rng in questions:
                left -= 1
                if left == 0:
                    raise ValueError("no")
                actions.append(int(bot_of(level).act(view, rng)))
            return actions

        monkeypatch.setattr("oxx_env.web.server._answers", answers)
        server = TableServer(folder, seed=1)
        room, _ = await server.new({"seats": [HUMAN, GREEDY, GREEDY]}, "me")
        for _ in range(5000):
            if room.table.over:
                break
            if room.thinking:
                await asyncio.sleep(0.001)
            elif room.deciding_bots:
                server.wake(room)
            else:
                room.move(0, room.turn(0), room.table.legal(0)[0])
                server.wake(room)
        await server.close()
        assert room.table.over
        return room.table.decisions, room.records()[0]["rounds"]

    undisturbed = asyncio.run(play(tmp_path / "a", 0))
    assert "cannot go on" not in capsys.readouterr().err
    assert asyncio.run(play(tmp_path / "b", call)) == undisturbed
    assert capsys.readouterr().err.count("a bot cannot go on: ValueError: no") == 1


# --- request limits -------------------------------------------------------------------------------


def limiter(what, at_once=9, own=9, burst=math.inf, per_s=1.0, **clock):
    return limits.Limiter(limits.Limit(what, at_once, own, burst, per_s), **clock)


def test_a_limiter_admits_what_its_limit_allows():
    now = [0.0]
    gate = limiter("it", at_once=3, own=2, burst=10, per_s=2, clock=lambda: now[0])

    def refused(client):
        with pytest.raises(RequestError) as error, gate.admit(client):
            pass
        return error.value.status, error.value.retry_s

    with gate.admit("a"), gate.admit("a"):
        assert refused("a") == (429, 2)
        with gate.admit("b"), contextlib.ExitStack() as others:
            assert refused("b") == (503, 5)  # it has some; clients without any are admitted
            for number in range(3 * (limits.SPARE - 1)):
                others.enter_context(gate.admit(f"other {number}"))
            assert refused("c") == (503, 5)
    with gate.admit("a"):
        gate.charge("a", 13)  # more than there was: below zero
    assert refused("a") == (429, 2)
    with gate.admit("b"):
        pass
    now[0] = 2.0
    with gate.admit("a"):
        gate.charge("a", 1)
    now[0] = 1e6
    for number in range(limits.FORGET + 1):
        gate.charge(str(number), 1)
    now[0] = 2e6
    gate.charge("a", 1)
    assert list(gate._budgets) == ["a"]  # clients with a full budget are forgotten


@pytest.fixture
def thinking(monkeypatch):
    """`served(work)`: the order in which a queue serves (client, name, seconds) that are all queued
    before any ends."""
    monkeypatch.setattr(limits, "_timed", lambda work: (work.args[1], *work(), None))

    def served(asked, threads=1):
        order, go_on = [], threading.Event()

        def work(name, seconds):
            go_on.wait(10)
            order.append(name)
            return (name,)

        async def all_of_it():
            queue = limits.FairQueue(threads, "test")
            runs = [asyncio.ensure_future(queue.run(one, work, *rest)) for one, *rest in asked]
            await asyncio.sleep(0)
            go_on.set()
            answers = await asyncio.gather(*runs)
            queue.close()
            assert not queue._waiting and queue._free == threads
            return answers

        assert asyncio.run(all_of_it()) == [name for _, name, _ in asked]
        return order

    return served


def test_a_client_with_much_work_delays_only_itself(thinking):
    much = [("a", f"a{n}", 1.0) for n in range(100)]
    order = thinking([*much, ("b", "b0", 1.0), ("b", "b1", 1.0), ("c", "c0", 1.0)])
    assert order[:6] == ["a0", "b0", "c0", "a1", "b1", "a2"]
    assert order[6:] == [f"a{n}" for n in range(3, 100)]  # in the order of their asking


def test_clients_get_the_same_time_not_the_same_number_of_pieces(thinking):
    long = [("a", f"a{n}", 1.0) for n in range(10)]
    order = thinking([*long, *(("b", f"b{n}", 0.25) for n in range(12))])
    assert order[:11] == ["a0", "b0", "b1", "b2", "b3", "a1", "b4", "b5", "b6", "b7", "a2"]


def test_unused_time_is_not_saved_up(thinking):
    async def come_back():
        queue, order = limits.FairQueue(1, "test"), []
        note = lambda name, _: order.append(name) or (name,)  # noqa: E731
        for n in range(5):
            await queue.run("a", note, f"a{n}", 1.0)
        await asyncio.gather(*(queue.run(one, note, one, 1.0) for one in "bbbaaa"))
        queue.close()
        return order[5:]

    assert asyncio.run(come_back()) == ["b", "b", "a", "b", "a", "a"]


def test_a_queue_passes_errors_on_and_forgets_clients_without_work():
    def fail():
        raise ValueError("so it is")

    async def ask():
        queue = limits.FairQueue(2, "test")
        with pytest.raises(ValueError, match="so it is"):
            await queue.run("a", fail)
        for number in range(limits.FORGET + 10):
            await queue.run(str(number), int)
        gone = asyncio.ensure_future(queue.run("b", time.sleep, 0.01))
        await asyncio.sleep(0)
        gone.cancel()
        while queue._free != 2:
            await asyncio.sleep(0.01)
        assert await queue.run("b", int) == 0
        queue.close()
        return queue

    queue = asyncio.run(ask())
    assert len(queue._used) <= limits.FORGET + 1 and not queue._waiting
    assert queue._free == 2


async def sit_from(app, address, players):
    """A table is made from an address; its id."""
    seats = [HUMAN, *[GREEDY] * (players - 1)]
    async with http_client(app, address) as who:
        made = await who.post("/api/tables", json={"seats": seats})
        assert made.status_code == 201
        return made.json()["id"]


def test_a_table_is_kept_before_those_of_a_client_with_many(tmp_path, monkeypatch):
    order, go_on, app = [], threading.Event(), make_app(tmp_path)
    write = rooms.write

    def slowly(table, *rest):
        assert go_on.wait(30)
        order.append(table.stem)
        return write(table, *rest)

    monkeypatch.setattr("oxx_env.web.server.write", slowly)
    monkeypatch.setattr(limits, "_timed", lambda work: (1.0, work(), None))

    async def play():
        queue = app.state.server.writer
        many = [asyncio.ensure_future(sit_from(app, "10.0.0.1", 2)) for _ in range(20)]
        while len(queue._waiting.get("10.0.0.1", ())) < 19:
            await asyncio.sleep(0.01)
        one = asyncio.ensure_future(sit_from(app, "10.0.0.2", 2))
        while "10.0.0.2" not in queue._waiting:
            await asyncio.sleep(0.01)
        go_on.set()
        await asyncio.gather(*many)
        await app.state.server.close()
        return await one

    assert order.index(asyncio.run(play())) == 1


def test_a_table_waits_for_one_decision_of_another_clients_bots_not_for_all(tmp_path, monkeypatch):
    order, go_on, app = [], threading.Event(), make_app(tmp_path)

    class Slow:
        def act(self, view, rng):
            assert go_on.wait(30)
            order.append(view.players)
            return view.legal[0]

    monkeypatch.setattr("oxx_env.web.server.bot_of", lambda level: Slow())
    monkeypatch.setattr("oxx_env.web.server.SLICE_S", -1.0)
    monkeypatch.setattr("oxx_env.web.server.time", types.SimpleNamespace(thread_time=lambda: 0.0))
    monkeypatch.setattr(limits, "_timed", lambda work: (1.0, work(), None))
    threads = app.state.server.thinkers._free

    async def play():
        for _ in range(20):
            await sit_from(app, "10.0.0.1", 10)
        await sit_from(app, "10.0.0.2", 2)
        queue = app.state.server.thinkers
        assert len(queue._waiting["10.0.0.1"]) == 20 - threads and not order
        go_on.set()
        async with asyncio.timeout(30):
            while len(order) < 20 * 9 + 1:
                await asyncio.sleep(0.01)
        await app.state.server.close()

    asyncio.run(play())
    assert order.index(2) <= threads + 1  # after those that were under way


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.168.1.7", "192.168.1.7"),
        ("::ffff:192.168.1.7", "192.168.1.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_a_client_is_an_address_or_a_household(address, client):
    assert limits.client_of(address) == client


@pytest.fixture
def busy_coach(monkeypatch):
    """The coach takes its time until the test is over or says so; how often it was asked."""
    asked, go_on, options = [], threading.Event(), coach.options

    def slowly(view, rng):
        asked.append(view.seat)
        assert go_on.wait(30)
        return options(view, rng)

    monkeypatch.setattr(coach, "options", slowly)
    yield asked, go_on
    go_on.set()


def test_tables_answer_while_the_coach_is_overloaded(client, busy_coach, record, monkeypatch):
    asked, go_on = busy_coach
    gate = limiter("the coach", at_once=6, own=4, burst=100)
    monkeypatch.setattr(client.app.state.server, "coach", gate)
    players = [sit(client, HUMAN, GREEDY) for _ in range(6)]
    with ThreadPoolExecutor(4) as people:
        waiting = [people.submit(player.get, "/coach") for player in players[:4]]
        wait_for(lambda: sum(gate._running.values()) == 4 and len(asked) == 2)
        answer = players[4].get("/coach")
        check(answer, 429, "still running")
        assert answer.headers["retry-after"] == "2"
        gate._running["another client"] = 3
        gate._running["testclient"] -= 1
        answer = players[4].get("/coach")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        gate._running["testclient"] += 1
        state = players[5].my_turn()
        assert players[5].move(state, state["legal"][0]).status_code == 200
        go_on.set()
        assert [one.result().status_code for one in waiting] == [200] * 4
    gate.charge("testclient", 1000)
    refused = [players[5].get("/coach"), players[5].get("/review")]
    refused.append(client.post("/api/review?seat=0", content=json.dumps(record)))
    for answer in refused:
        assert answer.status_code == 429 and 800 < int(answer.headers["retry-after"]) < 1000
    check(players[0].get("/coach"), 200)  # known advice costs nothing


def test_the_coach_works_once_for_several_requests_of_the_same(client, busy_coach):
    asked, go_on = busy_coach
    player = sit(client, HUMAN, GREEDY)
    player.my_turn()
    with ThreadPoolExecutor(3) as tabs:
        waiting = [tabs.submit(player.get, "/coach") for _ in range(3)]
        wait_for(lambda: sum(client.app.state.server.coach._running.values()) == 3)
        go_on.set()
        first, *others = [one.result().json() for one in waiting]
    assert all(other == first for other in others)
    assert len(asked) == 1


def test_the_coach_forgets_the_advice_used_longest_ago(client, monkeypatch):
    monkeypatch.setattr("oxx_env.web.server.MAX_JUDGED", 2)
    rooms_asked = []
    for _ in range(4):
        player = sit(client, HUMAN, GREEDY)
        player.my_turn()
        first = player.get("/coach").json()
        rooms_asked.append(player.room)
    assert [len(room.advice) for room in rooms_asked] == [0, 0, 1, 1]
    monkeypatch.setattr("oxx_env.web.server.MAX_JUDGED", 1)
    client.app.state.server._limit_judged(rooms_asked[0])
    assert player.get("/coach").json() == first  # given again, it is the same


def test_files_are_opened_in_a_limited_number(client, record, monkeypatch):
    gate = limiter("opening files", burst=5)
    monkeypatch.setattr(client.app.state.server, "files", gate)
    line = json.dumps(record).encode() + b"\n"
    assert client.post("/api/replay", content=line * 9).status_code == 200
    for answer in (
        client.post("/api/replay", content=line),
        client.post("/api/review?seat=0", content=line),
        client.post("/api/deck", json={"csv": "x"}),
    ):
        check(answer, 429, "try again in")
        assert 4 <= int(answer.headers["retry-after"]) <= 7


def test_slow_uploads_keep_no_other_client_from_opening_a_file(tmp_path):
    app = make_app(tmp_path)
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]

    async def ask(client, path, body):
        """The status of the answer, in a list; with None as body, which never arrives, none."""
        scope = {
            "type": "http", "method": "POST", "path": path, "raw_path": path.encode(),
            "query_string": b"seat=0", "headers": headers, "client": (client, 1),
            "http_version": "1.1", "scheme": "http", "root_path": "",
        }  # fmt: skip
        status = []

        async def receive():
            if body is None:
                await asyncio.sleep(60)
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            if message["type"] == "http.response.start":
                status.append(message["status"])

        await app(scope, receive, send)
        return status

    async def both():
        async with app.router.lifespan_context(app):
            paths = ["/api/replay", "/api/review"]
            slow = [
                asyncio.create_task(ask(f"10.0.0.{n}", path, None))
                for n in range(8)
                for path in paths
            ]
            await asyncio.sleep(0.05)
            assert await ask("10.0.1.1", "/api/deck", b'{"csv": "x"}') == [422]
            for path in paths:
                assert await ask("10.0.1.1", path, b"{}") == [422]  # it was read
                assert await ask("10.0.0.1", path, b"{}") == [429]
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            assert await ask("10.0.0.1", "/api/replay", b"{}") == [422]

    asyncio.run(both())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\n" * 1000, "the file is empty"),
        (b"\n" * (8 << 20), "more than 200 games is too long"),
        (b"[" * (8 << 20), "line 1 is longer than 65,536 bytes"),
        (b"[" + b"[]," * (1 << 20), "line 1 is longer than 65,536 bytes"),
        (b"[" + b"[]," * 20_000 + b"[]]", "line 1 is no JSON object"),
        (b'{"a":' + b"[" * 60_000, "line 1: no record"),
        (b"{}\n" * 1000, "line 1 has no format"),
    ],
)
def test_hostile_files_are_refused_fast(client, monkeypatch, data, words):
    monkeypatch.setattr(client.app.state.server, "files", limits.Limiter(limits.FILES))
    start = time.monotonic()
    check(client.post("/api/replay", content=data), 422, words)
    assert time.monotonic() - start < 10


def test_uploads_are_charged_by_games_and_by_bytes(client, monkeypatch):
    gate = limiter("opening files", burst=900)
    monkeypatch.setattr(client.app.state.server, "files", gate)
    for data, left in ((b"{}", 899), (b"{}\n" * 49, 849), (b"[" * (6 << 20), 325)):
        check(client.post("/api/replay", content=data), 422)
        assert gate._budget("testclient") == pytest.approx(left, abs=2)
    check(client.post("/api/review?seat=0", content=b"{}"), 422)
    assert gate._budget("testclient") == pytest.approx(324, abs=2)
    check(client.post("/api/review?seat=0", content=b"[" * 70_000), 413)


def test_a_file_is_read_in_another_thread_and_one_line_at_a_time(client, record, monkeypatch):
    monkeypatch.setattr(client.app.state.server, "files", limits.Limiter(limits.FILES))
    seen = []

    def noted(line, where):
        seen.append((threading.current_thread().name, len(line)))
        return parse(line, where)

    parse = records.parse_record
    monkeypatch.setattr(records, "parse_record", noted)
    line = json.dumps(record).encode() + b"\n"
    with ThreadPoolExecutor(2) as tabs:
        answers = [*tabs.map(lambda _: client.post("/api/replay", content=line * 3), range(2))]
    assert [one.status_code for one in answers] == [200, 200]
    assert {name for name, _ in seen} == {"reader_0"} and len(seen) == 6
    check(client.post("/api/review?seat=0", content=b"{}"), 422)
    assert seen[6][0] == "reader_0"


def test_new_tables_are_limited_for_each_client(tmp_path):
    app = make_app(tmp_path)
    app.state.server.tables = limiter("new tables", burst=3, per_s=1 / 60)
    with TestClient(app, base_url="http://localhost") as client:
        for status in (422, 201, 201, 201, 429):
            body = {"seats": [HUMAN] * (1 if status == 422 else 2)}
            check(answer := client.post("/api/tables", json=body), status)
        assert 30 <= int(answer.headers["retry-after"]) <= 60
        assert len(list((tmp_path / "tables").iterdir())) == 3


def test_only_a_trusted_proxy_names_the_client(tmp_path):
    middleware = pytest.importorskip("uvicorn.middleware.proxy_headers")
    app = make_app(tmp_path, name="table.example.org")
    trusting = middleware.ProxyHeadersMiddleware(app, trusted_hosts="10.0.0.1")

    async def ask(wrapped, address):
        async with http_client(wrapped, address, "https://table.example.org") as who:
            headers = {"X-Forwarded-For": "192.0.2.7", "Origin": "https://table.example.org"}
            body = {"seats": [HUMAN, HUMAN]}
            made = (await who.post("/api/tables", json=body, headers=headers)).json()
            foreign = {"Origin": "https://evil.example"}
            check(await who.post("/api/tables", json=body, headers=foreign), 403)
        return app.state.server.rooms.get(made["id"]).owner

    assert asyncio.run(ask(trusting, "10.0.0.1")) == "192.0.2.7"
    assert asyncio.run(ask(trusting, "10.0.0.2")) == "10.0.0.2"  # it is not the proxy
    assert asyncio.run(ask(app, "10.0.0.1")) == "10.0.0.1"
    with TestClient(make_app(tmp_path), base_url="http://table.example.org") as client:
        check(client.get("/api/info"), 421)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--proxy", "*"], "--proxy *: should be one address"),
        (["--proxy", "10.0.0.0/8"], "should be one address"),
        (["--name", "https://x.example/"], "should be a name, such as table.example.org"),
        (["--keep-mb", "0"], "--keep-mb is at least 1, not 0"),
    ],
)
def test_wrong_options_of_the_server_are_refused(tmp_path, capsys, option, words):
    assert _cli.main(["serve", "--port", "0", "--folder", str(tmp_path), *option]) == 2
    assert words in capsys.readouterr().err


def age(file, days):
    os.utime(file, (time.time() - days * 86400,) * 2)


def test_from_a_full_folder_old_tables_are_removed_and_then_no_new_one_is_made(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(storage, "MAX_TABLES", 4)

    with serving(tmp_path) as client:
        unplayed, played, old, fresh = (sit(client, HUMAN, HUMAN) for _ in range(4))
        for player in (played, old):
            assert player.move(settled(player), 0).status_code == 200
        settled(played), settled(old)
    for player, days in ((unplayed, 2), (played, 2), (old, 31), (fresh, 0.5)):
        age(player.file, days)
    with serving(tmp_path) as client:
        made = [sit(client, HUMAN, HUMAN), sit(client, HUMAN, HUMAN)]
        check(client.post("/api/tables", json={"seats": [HUMAN, HUMAN]}), 503, "keeps 4 tables")
        for player, status in ((unplayed, 404), (played, 200), (old, 404), (fresh, 200)):
            player.client = client
            check(player.get(), status)
        assert all(player.get().status_code == 200 for player in made)


def test_one_client_has_a_limited_number_of_tables_of_which_old_ones_are_removed(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(storage, "MAX_OWN", 3)
    with serving(tmp_path) as client:
        player = sit(client, HUMAN, *[GREEDY] * 9)
        player.play()
        others = [sit(client, HUMAN, HUMAN) for _ in range(2)]
        refused = client.post("/api/tables", json={"seats": [HUMAN, HUMAN]})
        check(refused, 429, "this address has 3 tables here")
        assert refused.headers["retry-after"] == "3600"
        client.app.state.server.rooms.check_space("10.0.0.9")  # another client may make some
    file = player.file
    assert file.read_text().startswith(
        '{"format": "oxx-table/2", "owner": "testclient", "played": true, "over": true, '
    )
    age(file, 2)
    with serving(tmp_path) as client:
        others.append(sit(client, HUMAN, HUMAN))
        assert not file.exists() and (tmp_path / "games" / f"{player.id}.jsonl").exists()
        report = capsys.readouterr().err
        assert "the oldest files were removed (tables: 1, finished games: 0)" in report
        check(client.post("/api/tables", json={"seats": [HUMAN, HUMAN]}), 429)
        for player in others:
            player.client = client
            check(player.get(), 200)


def test_the_oldest_files_that_are_not_in_use_are_removed_from_a_full_folder(tmp_path, monkeypatch):
    now = time.time()
    for name in ("tables", "games"):
        (tmp_path / name).mkdir()
    for name, owner, played, over, days in (
        ("a", "x", "true", "true", 3),
        ("b", "y", "false", "false", 2),
        ("c", "x", "true", "false", 29),
        ("d", "y", "true", "false", 31),
        ("e", "x", "true", "true", 0.5),
        ("f", "x", "false", "false", 0.9),
    ):
        head = f'{{"format": "oxx-table/2", "owner": "{owner}", "played": {played}, "over": {over}'
        for file in (tmp_path / "tables" / f"{name}.json", tmp_path / "games" / f"{name}.jsonl"):
            file.write_text(head.ljust(1000))
            age(file, days)
    (tmp_path / "tables" / "g.json").write_bytes(b"\xff" * 1000)  # no table; it stays a month

    def goes(client="z", in_use=()):
        return [f"{path.parent.name}/{path.stem}" for path in kept.removable(client, in_use)]

    kept = storage.Storage(tmp_path, 10**6)
    assert (kept.size, len(kept.tables), kept.full, goes()) == (13_000, 7, False, [])
    assert (kept.tables_of("x"), kept.tables_of("y"), kept.tables_of("")) == (4, 2, 1)
    monkeypatch.setattr(storage, "MAX_TABLES", 7)
    assert kept.full and goes() == ["tables/d"] and goes(in_use={"d"}) == ["tables/a"]
    monkeypatch.setattr(storage, "MAX_TABLES", 100)
    monkeypatch.setattr(storage, "MAX_OWN", 2)
    assert goes("x") == ["tables/a"] and goes("y") == ["tables/d"] and goes("z") == []
    kept.max_bytes = 9_000  # down to 8,100: tables first, then games
    oldest_games = ["games/d", "games/c"]
    assert kept.full and goes() == ["tables/d", "tables/a", "tables/b", *oldest_games]
    assert goes(in_use={"c", "b"}) == ["tables/d", "tables/a", "games/d", "games/a", "games/f"]
    gone = storage.remove([*kept.removable("z", ()), tmp_path / "tables" / "none.json"])
    for path in gone:
        kept.forget(path)
    assert kept.size == sum(file.stat().st_size for file in tmp_path.rglob("*.json*")) == 8_000
    assert not kept.full and goes() == []
    kept.written("h", storage.TableFile("z", False, False, now, 600), None)
    kept.written("h", storage.TableFile("z", True, True, now, 700), 50)
    kept.written("h", storage.TableFile("z", True, True, now, 700), 60)
    assert kept.size == 8_760 and kept.games["h"] == (now, 60)


# --- connections ----------------------------------------------------------------------------------


@pytest.fixture
def port(tmp_path, monkeypatch):
    """The port of a server with short timeouts."""
    uvicorn = pytest.importorskip("uvicorn")
    from oxx_env.web import connections, requests

    monkeypatch.setattr(connections, "CHECK_S", 0.2)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 5)
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    monkeypatch.setattr(connections, "LINGER_S", 0.1)
    monkeypatch.setattr(connections, "MAX_UNREAD_BODY", 1 << 20)
    monkeypatch.setattr(requests, "BODY_S", 0.3)
    config = uvicorn.Config(
        make_app(tmp_path),
        http=connections.Connection,
        ws="none",
        port=0,
        log_level="critical",
        proxy_headers=False,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(10)


def answer_to(port, pieces):
    """All that the server answers to what is sent, until it closes the connection or 5 s pass."""
    with socket.create_connection(("127.0.0.1", port), 5) as one:
        with contextlib.suppress(OSError):
            for piece in pieces:
                one.sendall(piece)
        answer = b""
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                answer += data
    return answer


class Endless:
    """The same bytes for ever; how many were taken."""

    def __init__(self, piece, most=64 << 20):
        self.piece, self.most, self.taken = piece, most, 0

    def __iter__(self):
        while self.taken < self.most:
            self.taken += len(self.piece)
            yield self.piece


def test_a_connection_that_says_nothing_is_closed(port):
    assert answer_to(port, [b""]) == b""


@pytest.mark.parametrize("text", [b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_request_without_the_end_of_its_head_is_answered(port, text):
    assert answer_to(port, [text]).startswith(b"HTTP/1.1 408 Request Timeout\r\n")


GET = b"GET /api/info HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /api/replay HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("begin", "piece", "status"),
    [
        (GET, b"a:b\r\n" * 100, b"431"),  # headers without end
        (GET, b"a: " + b"b" * 60_000 + b"\r\n", b"431"),  # few, but long
        (GET + b"X: ", b"x" * 1000, b"431"),  # one value
        (GET, b"x" * 1000, b"431"),  # one name
        (b"GET /", b"x" * 1000, b"431"),
        (b"GET /?", b"a=1&" * 1000, b"431"),
        (b"", b"\r\n" * 500, b"431"),
        (b"", b"x" * 1000, b"400"),
        (POST + b"\r\n", b"1;" + b"x" * 1000, b""),  # a chunk's extension; an answer is under way
        (POST + b"\r\n0\r\n", b"a:b\r\n" * 100, b""),  # headers after the body
        (POST + b"\r\n0\r\nX: ", b"x" * 1000, b""),
        (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"x" * 1000, b"4"),
        (GET + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n", b"x" * 1000, b"200"),
        (GET + b"Content-Length: 99999999\r\n\r\n", b"x" * 60_000, b"200"),  # a body in vain
        (GET + b"\r\n", GET + b"\r\n", b""),  # requests without end
    ],
)
def test_what_is_sent_without_end_is_not_taken_to_its_end(port, begin, piece, status):
    endless = Endless(piece)
    answer = answer_to(port, itertools.chain([begin], endless))
    assert endless.taken < 16 << 20, "all of it was taken"
    if status:
        assert answer.startswith(b"HTTP/1.1 " + status), answer[:200]


def test_headers_after_the_body_say_nothing_of_a_request(port):
    head = GET + b"Transfer-Encoding: chunked\r\nConnection: close\r\n"
    result = answer_to(port, [head + b"\r\n0\r\nHost: evil.example\r\nOrigin: http://evil\r\n\r\n"])
    assert result.startswith(b"HTTP/1.1 200 OK")
    result = answer_to(
        port, [head + b"Origin: http://evil\r\nOrigin: http://localhost\r\n\r\n0\r\n\r\n"]
    )
    assert result.startswith(b"HTTP/1.1 403 Forbidden")


def test_a_head_that_comes_at_once_is_bounded_as_well(port):
    for result, status in (
        (GET + b"X: " + b"x" * 70_000 + b"\r\n\r\n", b"431"),
        (GET + b"a: " + b"b" * 66_000 + b"\r\n\r\n", b"431"),
        (b"GET /" + b"x" * 66_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"431"),
        (GET + b"a:b\r\n" * 90 + b"Connection: close\r\n\r\n", b"200"),
        (GET + b"X: " + b"x" * 60_000 + b"\r\nConnection: close\r\n\r\n", b"200"),
    ):
        answer = answer_to(port, [result])
        assert answer.startswith(b"HTTP/1.1 " + status), answer[:100]
        assert b"onnection: close" in answer


def test_a_few_requests_may_be_sent_before_the_first_answer(port):
    result = answer_to(port, [(GET + b"\r\n") * 5 + GET + b"Connection: close\r\n\r\n"])
    assert result.count(b"HTTP/1.1 200") == 6
    assert answer_to(port, [(GET + b"\r\n") * 100]).count(b"HTTP/1.1 200") < 100


def test_a_connection_can_be_used_again_after_a_long_body(port):
    body = b"[" * 500_000
    head = b"POST /api/deck HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n"
    result = answer_to(port, [head + b"\r\n" + body, GET + b"Connection: close\r\n\r\n"])
    assert result.startswith(b"HTTP/1.1 415") and result.count(b"HTTP/1.1 200") == 1


def test_a_request_that_does_not_come_to_its_end_is_answered(port):
    head = b"POST /api/replay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
    assert answer_to(port, [head]).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /api/info HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"421"),
        (b"GET /api/info HTTP/1.1\r\n\r\n", b"4"),
        (b"GET http://evil.example/api/info HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421"),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (b"GET /%2e%2e/%2e%2e/app.py HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"POST /api/deck HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"400"),
    ],
)
def test_odd_requests_get_their_status(port, head, status):
    assert answer_to(port, [head]).startswith(b"HTTP/1.1 " + status)


def test_the_connections_of_a_client_are_limited(port):
    ask = b"GET /api/info HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as many:
        address, answered = ("127.0.0.1", port), []
        ones = [many.enter_context(socket.create_connection(address, 10)) for _ in range(6)]
        for one in ones:
            with contextlib.suppress(ConnectionError):
                one.sendall(ask)
                answered.append(one.recv(100)[:15])
    assert answered.count(b"HTTP/1.1 200 OK") == 5
    assert answer_to(port, [ask.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")])


# --- restarts -------------------------------------------------------------------------------------


def test_games_survive_a_restart(tmp_path):
    with serving(tmp_path) as client:
        anna = sit(client, HUMAN, HUMAN, GREEDY, rules="positive")
        ben = join(anna, name="Ben")
        for _ in range(12):
            for player in (anna, ben):
                state = settled(player)
                if state["legal"]:
                    player.move(state, state["legal"][0])
        before = [settled(anna), settled(ben)]
    with serving(tmp_path) as client:
        anna.client = ben.client = client
        after = [settled(anna), settled(ben)]
        for old, new in zip(before, after, strict=True):
            # An open page must not take the new state for an older one.
            assert new.pop("version") > old.pop("version")
        assert after == before
        play_all([anna, ben])
        records.replay(anna.records()[0])


def test_a_damaged_file_is_reported_and_disturbs_no_other_table(tmp_path):
    with serving(tmp_path) as client:
        broken, whole = sit(client, HUMAN, GREEDY), sit(client, HUMAN, GREEDY)
        file, text = broken.file, broken.file.read_text()
    data = json.loads(text)
    (first, *seats), (_, *heads) = data["seats"], data["deck"]["cards"]
    changes = [
        *({"decisions": [move]} for move in
          ([99, 0], [10**9, 0], [-(10**9), 0], [0, 99], [0], 3)),
        {"deck": []}, {"secret": "00"}, {"seats": [0]}, {"format": "oxx-table/1"},
        *({"seats": [{**first, key: value}, *seats]} for key, value in
          (("token", 5), ("former", [5]), ("kind", 3), ("kind", "x"), ("handed", "1"))),
        *({"deck": {"name": "balanced", "cards": [card, *heads]}} for card in
          ([1, 0, 0, 0, 0], ["1", 0, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0], None)),
        # An id in a file must not lead to writing elsewhere.
        *({"id": name} for name in ("../../x", whole.id, ["x"], None)),
    ]  # fmt: skip
    damaged = ["", "{", text[:200], '{"format": "oxx-table/2"}', "[]", "\x00", "[" * 10**5]
    for content in [*damaged, *(json.dumps({**data, **change}) for change in changes)]:
        file.write_text(content)
        with serving(tmp_path) as client:
            broken.client = whole.client = client
            check(broken.get(), 500, '{"error":"this table\'s file is damaged"}')
            assert whole.state()["hand"]


def test_rooms_out_of_use_leave_memory_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(rooms, "MAX_ROOMS", 10)
    with serving(tmp_path) as client:
        players = [sit(client, HUMAN, HUMAN) for _ in range(25)]
        assert len(client.app.state.server.rooms.rooms) <= 10
        assert all(len(player.state()["hand"]) == 4 for player in players)


# --- many at once ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_hundred_tables_at_once_stay_correct(tmp_path):
    bot = {"kind": "bot", "level": "champion"}
    app = make_app(tmp_path, seed=3)

    async def play(asked, rules, leaves):
        made = await asked.post("/api/tables", json={"rules": rules, "seats": [HUMAN, *[bot] * 3]})
        url = f"/api/tables/{made.json()['id']}"
        headers = {"Authorization": f"Bearer {made.json()['token']}"}
        state = (await asked.get(url, headers=headers)).json()
        while not state["over"]:
            if state["legal"]:
                if leaves and state["turn"] == 9:
                    return
                move = {"turn": state["turn"], "action": state["legal"][-1]}
                answer = await asked.post(f"{url}/moves", headers=headers, json=move)
                assert answer.status_code == 200
                state = answer.json()
            else:
                answer = await asked.get(f"{url}?version={state['version']}", headers=headers)
                state = answer.json()
        record = json.loads((await asked.get(f"{url}/record", headers=headers)).text)
        records.replay(record)
        assert record["scores"] == state["match"]["points"]

    async def play_all():
        async with http_client(app) as asked:
            # Half of the players leave in the middle of the game; their tables stay.
            plays = (play(asked, list(RULE_SETS)[i % 4], leaves=i % 8 >= 4) for i in range(200))
            await asyncio.gather(*plays)
        await app.state.server.close()

    asyncio.run(play_all())
    assert len(list((tmp_path / "tables").iterdir())) == 200
    assert len(list((tmp_path / "games").iterdir())) == 100


# --- the coach ------------------------------------------------------------------------------------


def test_the_coach_tells_every_choice_and_why(client):
    for rules in RULE_SETS:
        player = sit(client, HUMAN, GREEDY, GREEDY, rules=rules)
        for _ in range(12):
            state = player.my_turn()
            if state["over"]:
                break
            result = player.get("/coach").json()
            assert result["turn"] == state["turn"]
            assert [option["action"] for option in result["options"]] == state["legal"]
            assert sum(option["choice"] for option in result["options"]) == 1
            for option in result["options"]:
                assert option["why"] and all(option["why"])
                assert 0 <= option["win_share"] <= 1
                assert option["difference"] <= 0 <= option["se"]
                assert bool(option["notes"]) == option["choice"]
                if option["choice"]:
                    assert option["difference"] == option["win_difference"] == 0
            player.move(state, state["legal"][-1])


def test_the_reasons_can_be_checked_on_the_table(client):
    player = sit(client, HUMAN, GREEDY)
    player.my_turn()
    view, deck = player.room.view(0), player.room.setup.deck
    reasons = coach.Reasons(view)
    assert len(reasons.unseen) == 110 - 4 - 5

    def share(a, b):
        return any(x and y for x, y in zip(deck[a - 1], deck[b - 1], strict=True))

    for number in view.hand:
        fit = [row for row in range(5) if share(number, view.rows[row][-1])]
        lines = reasons.of(number, None)
        if not fit:
            assert lines[0].startswith("fits no row now")
        elif len(fit) < 3:
            assert lines[0] == "fits " + " and ".join(f"row {row}" for row in fit) + " now"
            if min(reasons.unseen) > number:
                assert lines[1] == "no unseen card is lower: nothing can come before it"
                continue
            for row in fit:
                if any(line.startswith(f"on row {row} it takes") for line in lines):
                    continue
                end = view.rows[row][-1]
                count = sum(n < number and share(n, end) for n in reasons.unseen)
                start = f"{count or 'none'} of the 101 unseen"
                assert any(line.startswith(start) for line in lines)


def test_the_review_counts_what_each_move_cost(client):
    player = sit(client, HUMAN, GREEDY)
    advised = {}
    while not (state := player.my_turn())["over"]:
        if state["turn"] % 4 == 0:
            advised[state["turn"]] = player.get("/coach").json()["options"]
        player.move(state, state["legal"][0])
    result = player.get("/review").json()["decisions"]
    assert len(result) == player.state()["turn"]
    for turn, options in advised.items():
        assert result[turn]["options"] == options
    for one in result:
        best = next(option for option in one["options"] if option["choice"])
        played = next(o for o in one["options"] if o["action"] == one["action"])
        beyond = played["difference"] < 0 and -played["difference"] > 2 * played["se"]
        assert one["cost"]["mistake"] == beyond
        assert one["cost"]["points"] == (-played["difference"] if beyond else 0)
        assert one["cost"]["points_error"] == (2 * played["se"] if beyond else 0)
        lost = best["win_share"] - played["win_share"] if beyond else 0
        assert one["cost"]["win_share"] == pytest.approx(lost)
        assert one["win_share"] == best["win_share"]
    assert any(one["cost"]["mistake"] for one in result)
    other = player.get("/review?seat=1").json()
    assert other["seat"] == 1 and other["decisions"]


def test_the_coach_is_silent_where_it_should_be(client):
    player = sit(client, HUMAN, HUMAN, coach=False)
    check(player.get("/coach"), 403)
    check(player.get("/review"), 403)
    other = sit(client, HUMAN, HUMAN)
    check(other.get("/review?seat=1"), 403)
    check(other.get("/review?seat=7"), 422)
    check(other.get("/review?seat=x"), 422)
    state = other.state()
    other.move(state, 0)
    check(other.get("/coach"), 409)


# --- replay and deck ------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_replay_shows_each_hand_before_each_round(client, tmp_path, rules):
    file = tmp_path / "games.jsonl"
    command = f"record --players 3 --rules {rules} --bots greedy --games 2 --output"
    _cli.main([*command.split(), str(file)])
    answer = client.post("/api/replay", content=file.read_bytes())
    check(answer, 200)
    games = answer.json()["games"]
    assert len(games) == 2
    for game, record in zip(games, records.read_records(file), strict=True):
        assert len(game["hands"]) == len(record["rounds"])
        for frame, played in zip(game["hands"], record["rounds"], strict=True):
            for hand, number in zip(frame["hands"], played["cards"], strict=True):
                assert number in hand and len(hand) <= 4
        reveals = [event for event in game["events"] if event["kind"] == "reveal"]
        assert [event["round"] for event in reveals] == list(range(1, len(record["rounds"]) + 1))
        assert [seat for seat in range(3) if game["ranks"][seat] == 1] == record["winners"]
        assert game["hands"][0]["hands"] == [sorted(pile[:4]) for pile in record["draw_piles"]]


def test_a_broken_record_is_refused_with_game_round_and_clause(client, record):
    broken = json.loads(json.dumps(record))
    broken["rounds"][2]["cards"][0] = record["rows"][0]
    answer = client.post("/api/replay", content=json.dumps(broken))
    check(answer, 422, "game 1, round 3, R4")
    for body in (b"", b"no json", b'{"format": "other"}', b"\xff"):
        check(client.post("/api/replay", content=body), 422)


@pytest.mark.parametrize("rules", RULE_SETS)
def test_a_record_of_any_origin_gets_a_review(client, tmp_path, rules):
    file = tmp_path / "games.jsonl"
    command = f"record --players 6 --rules {rules} --bots greedy --games 2 --match 2 --output"
    _cli.main([*command.split(), str(file)])
    games = [*records.read_records(file)]
    for record in games if rules == "base" else games[1:]:
        decisions = records.replay(record).decisions
        answer = client.post("/api/review?seat=4", content=json.dumps(record))
        check(answer, 200)
        result = answer.json()
        assert [one["action"] for one in result["decisions"]] == [a for s, a in decisions if s == 4]
        points = np.add(record["match"]["points_before"], record["scores"])
        best = points.max() if "positive" in rules else points.min()
        assert result["winners"] == np.flatnonzero(points == best).tolist()
        for one in result["decisions"]:
            assert one["game"] == record["match"]["game"]
            played = record["rounds"][one["round"] - 1]["cards"][4]
            choice = next(o for o in one["options"] if o["action"] == one["action"])
            assert choice["card"] == played
            lost = one["win_share"] - choice["win_share"] if one["cost"]["mistake"] else 0
            assert one["cost"]["win_share"] == pytest.approx(lost)
    if rules == "positive":  # given again, it is the same
        again = client.post("/api/review?seat=4", content=json.dumps(record))
        assert again.json() == result


def test_what_is_no_record_gets_no_review(client, record):
    text, match = json.dumps(record), record["match"]

    def changed(**values):
        return json.dumps({**record, **values})

    for query, body, status, words in [
        ("", text, 422, "seat: should be there"),
        ("?seat=x", text, 422, "whole number"),
        ("?seat=10", text, 422, "should be 0 to 9"),
        ("?seat=0", "", 422, "no JSON"),
        ("?seat=0", "no json", 422, "no JSON"),
        ("?seat=0", b"\xff\xfe", 422, "not UTF-8"),
        ("?seat=0", "[" * 60_000, 422, "no record"),
        ("?seat=0", text[:-20], 422, "breaks off"),
        ("?seat=0", text + text, 422, "no JSON"),
        ("?seat=0", '{"format": "other"}', 422, "format"),
        ("?seat=0", changed(rounds=record["rounds"][:-1]), 422, "is missing"),
        ("?seat=0", changed(rules="__import__('os')"), 422, "should be one of"),
        ("?seat=0", changed(scores=[10**30] * 10), 422, "the points are"),
        ("?seat=0", changed(match={**match, "of": 2, "game": 2, "points_before": [10**12] * 10}),
         422, "beyond"),
        ("?seat=0", text + " " * MAX_LINE, 413, "larger than"),
    ]:  # fmt: skip
        check(client.post(f"/api/review{query}", content=body), status, words)


def test_a_game_too_long_for_a_review_is_refused(client, record, monkeypatch):
    monkeypatch.setattr(coach, "MAX_DECISIONS", 3)
    answer = client.post("/api/review?seat=0", content=json.dumps(record))
    check(answer, 422, "more than 3 decisions")


def test_a_deck_is_checked_and_comes_back_as_csv(client, tmp_path):
    deck = cards.load_deck("two-color")
    answer = client.post("/api/deck", json={"cards": deck.tolist()})
    assert answer.status_code == 200
    file = tmp_path / "deck.csv"
    file.write_text(answer.json()["csv"])
    assert (cards.load_deck(file) == deck).all()
    again = client.post("/api/deck", json={"csv": answer.json()["csv"]})
    assert again.json()["cards"] == deck.tolist()
    bad = client.post("/api/deck", json={"csv": answer.json()["csv"].replace("\n7,", "\n8,")})
    check(bad, 422, "number 8 appears twice")
    for body in ({}, {"csv": 3}, {"cards": 3}, {"csv": "", "cards": []}, {"cards": [[]] * 110}):
        check(client.post("/api/deck", json=body), 422)


# --- the command ----------------------------------------------------------------------------------


def test_a_port_in_use_is_reported(capsys, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code = _cli.main(["serve", "--port", str(port), "--folder", str(tmp_path)])
    assert code == 2
    assert f"port {port} is in use" in capsys.readouterr().err


def test_one_server_uses_a_folder_and_removes_half_written_files(tmp_path, capsys):
    pytest.importorskip("fcntl")
    (tmp_path / "tables").mkdir()
    half = tmp_path / "tables" / f".{'a' * 16}.json.{'0' * 16}"
    half.write_text('{"format": "oxx-ta')
    command = serve.Run(folder=str(tmp_path))
    with command._alone():
        assert not half.exists()
        assert _cli.main(["serve", "--port", "0", "--folder", str(tmp_path)]) == 2
        assert "another oxx serve keeps its tables there" in capsys.readouterr().err
    with command._alone():
        pass


def ask(url, token="", body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_the_server_listens_on_this_machine_alone_and_ctrl_c_ends_it(tmp_path):
    command = [sys.executable, "-m", "oxx_env", "serve", "--port", "0", "--folder", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            line = server.stdout.readline()
            url = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
            with urllib.request.urlopen(f"{url}api/info", timeout=120) as answer:
                assert json.load(answer)["levels"]
            made = ask(f"{url}api/tables", body={"seats": [HUMAN, HUMAN]})
            table, token = f"{url}api/tables/{made['id']}", made["token"]
            version = ask(table, token)["version"]
            got = []
            wait = lambda: got.append(ask(f"{table}?version={version}", token))  # noqa: E731
            waiting = threading.Thread(target=wait)
            waiting.start()
            time.sleep(0.3)
            server.send_signal(signal.SIGINT)
            _, err = server.communicate(timeout=30)
            waiting.join(10)
        finally:
            server.kill()
    assert got[0]["phase"] == "card"  # the waiting request was answered
    assert "Traceback" not in err
    assert server.returncode in (0, 130)
