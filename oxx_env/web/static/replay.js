// Replay of a record: step by step, seen from one seat or with all hands.
import { call } from "./api.js";
import { Model, glide, revealed, rows, standings } from "./board.js";
import { drawReview, showReview } from "./coach.js";
import { announce, card, el, info, plural, sleep, store } from "./dom.js";

export async function replay(root, [id, token, game, round], signal) {
  const picker = el("input", { type: "file", id: "file", accept: ".jsonl,.json,.ndjson" });
  const status = el("p", { class: "bad", role: "alert" });
  const body = el("div");
  const open = async (text, number = 1, at = 0) => {
    status.textContent = "";
    try {
      const { games } = await call("api/replay", { text });
      const lines = text.split("\n").filter((line) => line.trim());
      new Replay(body, games, lines, signal).show(Math.max(1, Math.min(number, games.length)) - 1, at);
    } catch (error) {
      body.replaceChildren();
      status.textContent = error.message;
    }
  };
  picker.addEventListener("change", async () => {
    const [chosen] = picker.files;
    if (chosen?.size > info.max_file) status.textContent = `${chosen.name} is larger than ${info.max_file >> 20} MB and cannot be opened here.`;
    else if (chosen) await open(await chosen.text());
    picker.value = ""; // so that the same file can be chosen again after a change
  });
  root.replaceChildren(el("h1", {}, "Replay"),
    el("p", { class: "bar" }, el("label", { class: "bar" }, "A file of records (JSON lines)", picker)), status, body);
  if (id) {
    const text = await call(`api/tables/${encodeURIComponent(id)}/record`, { token, raw: true, signal });
    await open(text, Number(game) || 1, Number(round) || 0);
  }
}

class Replay {
  /** `lines` [game]: the record of each game as text. */
  constructor(root, games, lines, signal) {
    Object.assign(this, { root, games, lines, signal, at: 0, seat: -1, playing: false });
    document.addEventListener("keydown", (event) => this.key(event), { signal });
    signal.addEventListener("abort", () => { this.playing = false; });
  }

  show(index, round) {
    this.game = this.games[index];
    this.index = index;
    this.seat = Math.min(this.seat, this.game.players - 1);
    const found = this.game.events.findIndex((event) => event.kind === "reveal" && event.round === round);
    this.at = Math.max(1, found);
    this.build();
  }

  /** The table after the first `at` events. */
  modelAt(at) {
    const model = new Model(this.game.cards, this.game.players, this.game.rules);
    for (const event of this.game.events.slice(0, at)) model.apply(event);
    return model;
  }

  get last() { return this.game.events.length; }

  async go(at, pace = 0) {
    const to = Math.max(1, Math.min(this.last, at));
    if (to === this.at) return;
    const event = to === this.at + 1 ? this.game.events[to - 1] : undefined;
    this.at = to;
    await glide(this.root, () => this.draw(), event ? pace : 0, event);
    announce(this.model.message);
  }

  round(by) {
    const starts = this.game.events.map((event, index) => (event.kind === "reveal" ? index : -1)).filter((i) => i > 0);
    const to = by > 0 ? starts.find((index) => index > this.at) : starts.filter((index) => index < this.at).at(-1);
    this.go(to ?? (by > 0 ? this.last : 1));
  }

  async run() {
    this.playing = !this.playing;
    this.draw();
    while (this.playing && this.at < this.last) {
      const pace = Number(store.get("pace", "550")) || 250;
      await this.go(this.at + 1, pace);
      await sleep(pace * 0.6);
    }
    this.playing = false;
    if (this.root.isConnected) this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select, input")) return;
    const acts = {
      ArrowRight: () => this.go(this.at + 1, 300), ArrowLeft: () => this.go(this.at - 1),
      ArrowUp: () => this.round(-1), ArrowDown: () => this.round(1), Home: () => this.go(1), End: () => this.go(this.last),
      " ": () => this.run(),
    };
    if (event.key === " " && event.target.matches("button, a, summary")) return;
    if (acts[event.key]) {
      event.preventDefault();
      acts[event.key]();
    }
  }

  build() {
    const { game } = this;
    this.slider = el("input", { type: "range", id: "step", min: 1, max: this.last, value: this.at, "aria-label": "Step",
      oninput: (e) => this.go(Number(e.target.value)) });
    const button = (id, text, label, act) => el("button", { id, type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.playButton = button("play", "Play", "Play on its own (space)", () => this.run());
    const which = this.games.length > 1 ? el("label", { class: "bar" }, "Game", el("select", { id: "game",
      onchange: (e) => this.show(Number(e.target.value), 0) }, this.games.map((one, index) =>
        el("option", { value: index, selected: index === this.index }, `${index + 1}`)))) : null;
    this.table = el("div", { class: "game" });
    this.reviewed = el("div");
    const reviewedSeat = el("select", { id: "judged" }, game.names.map((name, seat) =>
      el("option", { value: seat, selected: seat === Math.max(0, this.seat) }, name)));
    this.root.replaceChildren(
      el("p", {}, `${game.rules}, ${plural(game.players, "player")}, deck ${game.deck}, ${plural(game.rounds, "round")}, `,
        el("b", {}, game.direction)),
      el("div", { class: "bar", role: "group", "aria-label": "Steps" },
        button("first", "⇤", "To the deal (Home)", () => this.go(1)),
        button("round-back", "«", "A round back (up)", () => this.round(-1)),
        button("back", "‹", "A step back (left)", () => this.go(this.at - 1)),
        this.playButton,
        button("next", "›", "A step on (right)", () => this.go(this.at + 1, 300)),
        button("round-on", "»", "A round on (down)", () => this.round(1)),
        button("last", "⇥", "To the end (End)", () => this.go(this.last)),
        this.slider, which,
        el("label", { class: "bar" }, "Seen from", el("select", { id: "seat", onchange: (e) => { this.seat = Number(e.target.value); this.draw(); } },
          el("option", { value: -1 }, "all hands open"),
          game.names.map((name, seat) => el("option", { value: seat, selected: seat === this.seat }, name))))),
      this.table,
      el("section", { class: "panel", "aria-label": "Review" },
        el("div", { class: "bar" }, el("h2", {}, "Review"), el("label", { class: "bar" }, "Seat", reviewedSeat),
          el("button", { id: "review", type: "button", onclick: (e) => this.review(Number(reviewedSeat.value), e.target) }, "Ask the coach")),
        this.reviewed));
    this.draw();
  }

  /** The coach's review of a seat's decisions in this game. */
  async review(seat, button) {
    const { game } = this;
    button.disabled = true;
    const link = ({ round }) => el("button", { type: "button", onclick: () => this.showRound(round) }, "Show it");
    const load = () => call(`api/review?seat=${seat}`, { text: this.lines[this.index], signal: this.signal });
    const done = await showReview(this.reviewed, load, ({ decisions, winners, basis }) => [el("h3", {}, game.names[seat]),
      ...drawReview(decisions, { match: game.match, direction: game.direction, over: true, winners }, seat, basis, link)]);
    if (done) announce(`The review of ${game.names[seat]} is ready.`);
    button.disabled = false;
  }

  showRound(round) {
    this.go(this.game.events.findIndex((event) => event.kind === "reveal" && event.round === round));
    this.table.scrollIntoView({ block: "start" });
    this.slider.focus({ preventScroll: true });
  }

  draw() {
    const { game } = this;
    this.model = this.modelAt(this.at);
    const { model } = this;
    this.slider.value = this.at;
    this.slider.setAttribute("aria-valuetext", model.message);
    this.playButton.textContent = this.playing ? "Stop" : "Play";
    const over = model.end !== null;
    // `hands` are those before each round; revealed cards have left them until the next round's hands are drawn.
    const ended = model.revealed.length > 0 && model.revealed.every((one) => one.placed) ? game.hands[model.round] : null;
    const frame = ended ?? (over ? null : game.hands[Math.max(0, model.round - 1)]);
    const played = ended ? [] : model.revealed.map((one) => one.number);
    const hand = (seat) => (frame ? frame.hands[seat].filter((number) => !played.includes(number)) : []);
    this.table.replaceChildren(
      el("section", { class: "head" }, el("span", {}, model.round ? `Round ${model.round}` : "The deal"),
        el("p", { class: "message", id: "step-text" }, model.message),
        over ? standings(game.names, game.scores, game.ranks, game.direction, this.seat) : null),
      rows(model, [], () => {}),
      el("section", { class: "seats", "aria-label": "Players" }, game.names.map((name, seat) =>
        el("div", { class: `seat${seat === this.seat ? " you" : ""}`, "data-seat": seat },
          el("span", { class: "who" }, name), el("span", { class: "points" }, model.points[seat]),
          el("span", { class: "has" }, frame ? `pile ${frame.pile_sizes[seat]} · ` : "", `taken ${model.taken[seat]}`,
            this.seat < 0 || this.seat === seat ? ` · hand: ${hand(seat).join(", ") || "empty"}` : ` · ${plural(hand(seat).length, "card")} in hand`)))),
      el("section", { class: "hand", "aria-label": "Hand" },
        this.seat >= 0 ? el("div", {}, el("h2", {}, `Hand of ${game.names[this.seat]}`),
          el("div", { class: "held" }, hand(this.seat).map((number) => card(number, game.cards[number - 1])))) : null,
        revealed(model, game.names)));
  }
}
