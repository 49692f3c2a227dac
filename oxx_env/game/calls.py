"""Functions of the rules as Python calls them: for GAME [1] and DECK [1].

To pass a record by itself costs 25 µs a call, an array of one 1 to 2 µs: Numba looks through the
whole record type each time.
"""

from oxx_env.game import rules
from oxx_env.lib.jit import kernel


@kernel
def act(games, decks, seat, action):
    rules.act(games[0], decks[0], seat, action)


@kernel
def tick(games, decks):
    return rules.tick(games[0], decks[0])


@kernel
def advance(games, decks):
    rules.advance(games[0], decks[0])


@kernel
def shuffle(games):
    rules.shuffle(games[0])


@kernel
def start_round(games):
    rules.start_round(games[0])


@kernel
def see(games, number):
    rules.see(games[0], number)


@kernel
def put_on_row(games, decks, row, number):
    rules.put_on_row(games[0], decks[0], row, number)


@kernel
def match_over(games):
    return rules.match_over(games[0])


@kernel
def someone_is_out(games):
    return rules.someone_is_out(games[0])


@kernel
def decides(games, seat):
    return rules.decides(games[0], seat)


@kernel
def legal_actions(games, decks, seat):
    return rules.legal_actions(games[0], decks[0], seat)


@kernel
def legal_rows(games, decks, number):
    return rules.legal_rows(games[0], decks[0], number)


@kernel
def matching_rows(games, decks, number):
    return rules.matching_rows(games[0], decks[0], number)
