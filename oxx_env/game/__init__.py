"""The game: its rules as one compiled kernel, and what a seat knows of it.

    cards       decks: load, check, describe; `decks/` holds the shipped ones
    rules       the kernel: one game is one record, each function answers one question
    scoring     which points win: relative points, places, shares of the victory
    calls       functions of the rules as Python calls them
    engine      batches of games: who decides, what is legal, step
    table       `Table`, a match in progress
    replay      `Replay`, a match gone through step by step, with its events
    views       what one seat knows
    observe     the observation by named pieces; `explain`
    validation  is a game from a file one that play can reach?
"""
