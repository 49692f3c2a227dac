"""A table in the browser: `oxx serve`. Needs the extra `web`.

names        names of people: what of a name is visible, and which names look alike
levels       the opponents that the page offers
coach        reasons for and against a card, and what a move cost
limits       request limits, and queues that are fair to all clients
errors       the exception by which a request is refused
tokens       deals, tokens and links from a table's secret; hashes
setup        a table's settings and seats, read from a request
room         one match with its seats; knows no network
page         what a page is sent of a room, or of a record
storage      the files of the folder, and which are removed when it is full
rooms        all rooms of a folder
server       the rooms at work: bots in threads, files written, waiting requests answered
connections  bytes and time of a connection
guard        host names and pages of other sites
requests     reading a request
app          the addresses and their answers
static/      the page: HTML, CSS and JavaScript as written, no build step
"""
