"""A table in the browser: `oxx serve`. Needs the extra `web`.

levels   the opponents a page offers
coach    why a card is good or bad, and what a move cost
rooms    tables with seats held by tokens, kept in files; knows no network
limits   how much work of which kind one may ask for, and all together
connections  how long one may say nothing
house    lets bots think in threads and tells who waits that something happened
app      requests and answers: every check of what comes from outside
static/  the page: HTML, CSS and JavaScript as written, no build step
"""
