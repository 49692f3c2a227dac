"""The shipped decks: number and six head counts per card.

They are *reconstructions*: the true list of which colors each number shows is not public.
`generate.py` beside them writes them; `oxx_env.cards` reads them.
"""
