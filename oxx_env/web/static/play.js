// A seat at a table: shows the server's state, sends the person's choices. Where several people share the
// device, the page holds the hand of one seat at a time, hidden until its player uncovers it. Watchers have
// no seat, and the server sends them no hand.
import { call, change, reconnect } from "./api.js";
import { Model, glide, revealed, rows, standings } from "./board.js";
import { announce, capital, card, download, el, inWords, isolate, sleep, store } from "./dom.js";
import { start } from "./home.js";
import { adviceTable, costSentence, reviewPage } from "./coach.js";

const ordinal = (rank) => `${rank}${["st", "nd", "rd"][rank - 1] ?? "th"}`; // up to 10
const wins = (option) => `${Math.round(100 * option.win_share)} %`;
const mark = (option) => (option.choice ? "★ " : option.about_equal ? "≈ " : "");
const PACES = [["0", "at once"], ["250", "fast"], ["550", "normal"], ["1100", "slow"]];

/** `tokens`: those of the seats at this device, with points between them. */
export async function play(root, [id, tokens = "", page], signal) {
  const path = `api/tables/${encodeURIComponent(id)}`;
  if (page === "review") return reviewPage(root, path, tokens, id);
  await new SeatPage(root, path, id, tokens, signal).begin();
}

class SeatPage {
  constructor(root, path, id, tokens, signal) {
    Object.assign(this, { root, path, id, signal });
    this.address = tokens; // as in the page's address
    this.tokens = tokens.split(".");
    this.token = this.tokens[0]; // of the seat in front
    this.shared = this.tokens.length > 1; // do several people share this device?
    this.covered = this.shared; // is the hand hidden behind the curtain?
    this.holders = new Map(); // seat -> token, of this device
    this.state = null;
    this.model = null;
    this.queue = []; // events to be shown
    this.showing = false;
    this.sending = false;
    this.fault = "";
    this.lost = false; // is the connection lost?
    this.changing = false; // is a seat being given away?
    this.managing = false; // do all seats show their buttons?
    this.advice = null; // {turn, options, basis}
    this.coachFault = ""; // why there is no advice
    this.judgements = new Map(); // token -> what its last move cost
    this.coachOpen = store.get("coachOpen", false);
    this.log = [];
  }

  async begin() {
    let state = null;
    for (const token of [...this.tokens.slice(1), this.token]) {
      try {
        state = await call(this.path, { token, signal: this.signal });
      } catch (error) {
        if (this.givenAway(error, token)) return;
        throw error;
      }
      this.holders.set(state.seat, token);
    }
    this.watching = state.seat === null;
    this.state = state;
    this.cards = state.cards;
    this.model = new Model(this.cards, state.seats.length, state.rules);
    this.received = state.events_from + state.events.length;
    for (const event of state.events) this.take(event);
    this.game = el("div", { class: "game" });
    this.root.replaceChildren(el("h1", { class: "visually-hidden" }, "The table"), this.game);
    this.draw();
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey, { signal: this.signal });
    document.addEventListener("visibilitychange", () => this.whenVisible?.(), { signal: this.signal });
    // While a button is pressed it must not be replaced by a new one, or the click is lost.
    document.addEventListener("pointerdown", () => { this.pressed = true; }, { signal: this.signal });
    for (const end of ["pointerup", "pointercancel"]) {
      document.addEventListener(end, () => setTimeout(() => {
        this.pressed = false;
        if (this.delayed) this.draw();
      }), { signal: this.signal });
    }
    await this.handOver();
    this.focusChoice();
    this.refreshCoach();
    if (!state.over) this.follow();
  }

  /** Where several people share the device: bring a seat to the front that has to decide. */
  async handOver() {
    const { state } = this;
    if (!this.shared || this.showing || this.sending || this.handing || state.waits_for.includes(state.seat)) return;
    const token = this.holders.get(state.waits_for.find((seat) => this.holders.has(seat)));
    if (!token) return;
    this.handing = true;
    this.covered = true;
    try {
      const next = await call(`${this.path}?since=${this.received}`, { token, signal: this.signal });
      Object.assign(this, { token, advice: null });
      await this.update(next);
      this.focusChoice();
      announce(this.prompt());
    } catch (error) { // `follow` comes here again
      this.fail(error);
    }
    this.handing = false;
  }

  uncover() {
    this.covered = false;
    this.draw();
    this.focusChoice();
    this.refreshCoach();
    announce(this.prompt());
  }

  request(query, timeout) {
    return call(`${this.path}${query}`, { token: this.token, signal: this.signal, timeout });
  }

  /** Show an error: a lost connection until it is back, or the server's message. */
  fail(error) {
    if (this.signal.aborted || this.givenAway(error, this.token)) return;
    if (error.lost) this.lost = true;
    else this.fault = error.message;
    this.draw();
  }

  /** Was the seat of a token given away? Then its page ends. */
  givenAway(error, token) {
    if (!error.data?.watch) return false;
    const others = this.tokens.filter((one) => one !== token);
    if (others.length) location.replace(`#/table/${this.id}/${others.join(".")}`);
    else {
      this.gone = true;
      this.root.replaceChildren(el("h1", {}, "This seat is no longer yours"), el("p", { class: "bad", role: "alert" }, error.message),
        el("p", {}, el("a", { class: "button", href: `#/watch/${this.id}/${error.data.watch}` }, "Watch the table")));
    }
    return true;
  }

  /** Wait for news until the match is over or the page is left. */
  async follow() {
    let wait = 500;
    while (!this.signal.aborted && !this.state.over) {
      if (document.hidden) await new Promise((resolve) => { this.whenVisible = resolve; }); // a browser allows few connections
      try {
        const { token } = this;
        const state = await this.request(`?version=${this.state.version}&since=${this.received}`, 35000);
        wait = 500;
        this.lost = false;
        if (token !== this.token) continue; // meanwhile another seat came to the front
        this.fault = "";
        await this.update(state);
      } catch (error) {
        this.fail(error);
        if (this.signal.aborted || this.gone || !error.temporary) return;
        await reconnect(Math.max(wait, 1000 * error.retry), this.signal);
        wait = Math.min(8000, wait * 2);
      }
    }
  }

  async update(state) {
    if (state.version < this.state.version) return;
    const due = this.state.turn !== state.turn || this.state.phase !== state.phase;
    // Another tab has decided for the seat in front: hide its hand as after a choice made here.
    if (this.shared && state.seat === this.state.seat && state.turn > this.state.turn) this.covered = true;
    this.logSeats(this.state.seats, state.seats);
    this.state = state;
    if (due) Object.assign(this, { advice: null, coachFault: "" });
    const fresh = Math.max(0, this.received - state.events_from);
    this.queue.push(...state.events.slice(fresh));
    this.received = Math.max(this.received, state.events_from + state.events.length);
    if (this.queue.length) this.showEvents();
    else {
      this.draw();
      await this.handOver();
      this.refreshCoach();
    }
  }

  /** Log people who came or left. */
  logSeats(before, now) {
    now.forEach(({ name, kind, free }, index) => {
      const old = before[index];
      if (old.name === name && old.kind === kind && old.free === free) return;
      const text = free ? `The seat of ${isolate(old.name)} is free.` : old.free ? `${isolate(name)} sits down.`
        : `${isolate(name)} plays on for ${isolate(old.name)}.`;
      this.log.push({ text });
      announce(text);
    });
  }

  async showEvents() {
    if (this.showing) return;
    this.showing = true;
    while (this.queue.length && !this.signal.aborted) {
      const event = this.queue.shift();
      const pace = this.hurry || document.hidden ? 0 : Number(store.get("pace", "550"));
      await glide(this.root, () => { this.take(event); this.draw(); }, pace, event);
      if (this.model.message) announce(this.model.message);
      if (event.kind === "end" && !this.state.over) await this.pauseAfterGame();
      else if (pace) await sleep(event.kind === "reveal" ? pace : pace * 0.6);
    }
    this.hurry = false;
    this.showing = false;
    this.draw();
    await this.handOver();
    this.focusChoice();
    this.refreshCoach();
    if (this.canChoose || this.covered) announce(this.prompt());
  }

  take(event) {
    this.model.apply(event);
    if (event.kind === "deal") this.log = [];
    if (event.kind === "reveal") this.log.push({ round: event.round });
    if (event.kind === "place") this.log.push({ text: event.text });
  }

  pauseAfterGame() {
    return new Promise((resolve) => {
      this.between = resolve; // called by "Next game"
      this.draw();
      document.getElementById("go-on")?.focus();
      this.signal.addEventListener("abort", resolve);
    }).then(() => { this.between = null; });
  }

  // --- choosing ---

  get canChoose() {
    if (this.covered && this.state.phase === "card") return false; // rows are chosen with the hand hidden
    return !this.showing && !this.sending && !this.between && this.state.legal.length > 0;
  }

  async choose(action) {
    if (!this.canChoose || !this.state.legal.includes(action)) return;
    this.sending = true;
    this.fault = "";
    const { token, state: { turn } } = this;
    this.covered = this.shared;
    this.draw();
    let state = null;
    try {
      state = await change(`${this.path}/moves?since=${this.received}`, { token, body: { turn, action }, signal: this.signal,
        lost: () => { this.lost = true; this.draw(); } });
      this.lost = false;
    } catch (error) {
      // 409: the decision was made before, in another tab
      if (error.status !== 409) this.fail(error);
      if (this.signal.aborted || this.gone) return;
    }
    this.sending = false;
    try {
      await this.update(state ?? await this.request(`?since=${this.received}`));
      await this.handOver();
      if (state && this.coachOpen) this.judge(turn, token);
    } catch (error) {
      this.fail(error);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const digit = /^[0-9]$/.test(event.key) ? Number(event.key) : null;
    if (digit !== null) {
      if (this.state.phase === "card" && digit >= 1) this.choose(digit - 1);
      if (this.state.phase === "row" && digit <= 4) this.choose(digit + 4);
    } else if (event.key === "c" && this.state.coach && !this.covered && !this.watching) this.toggleCoach();
    else if (event.key === "Escape" || event.key === "s") this.hurry = true;
    else if (event.key === "ArrowRight" || event.key === "ArrowDown") this.step(1, event);
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp") this.step(-1, event);
  }

  step(by, event) {
    const choices = [...this.game.querySelectorAll("button.pick:not(:disabled), button.row")];
    if (!choices.length) return;
    event.preventDefault();
    const at = choices.indexOf(document.activeElement);
    choices[(at + by + choices.length) % choices.length].focus();
  }

  focusChoice() {
    if (!this.canChoose && !this.covered) return;
    const active = document.activeElement;
    if (active && active !== document.body && !this.game.contains(active) && active.id !== "main") return;
    if (active?.closest?.(".coach, .log, .tools, .seats")) return;
    this.game.querySelector("button.pick:not(:disabled), button.row, #uncover")?.focus({ preventScroll: true });
  }

  // --- the coach ---

  toggleCoach() {
    this.coachOpen = !this.coachOpen;
    store.set("coachOpen", this.coachOpen);
    this.draw();
    this.refreshCoach();
  }

  async refreshCoach() {
    if (!this.state.coach || !this.coachOpen || this.covered || !this.canChoose) return;
    if (this.advice?.turn === this.state.turn) return;
    try {
      const advice = await this.request("/coach");
      if (advice.turn !== this.state.turn) return;
      Object.assign(this, { advice, coachFault: "" });
      this.draw();
    } catch (error) {
      if (this.signal.aborted || error.status === 409) return; // the table has changed meanwhile
      this.coachFault = error.message;
      this.draw();
      if (error.retry) setTimeout(() => this.refreshCoach(), 1000 * error.retry);
    }
  }

  async judge(turn, token) {
    try {
      const { decisions } = await call(`${this.path}/review`, { token, signal: this.signal });
      if (!decisions[turn]) return;
      this.judgements.set(token, costSentence(decisions[turn]));
      if (this.covered) return; // it names the card, which only its player may see
      this.draw();
      announce(this.judgements.get(token));
    } catch { /* not allowed, or the page was left */ }
  }

  // --- drawing ---

  names() {
    return this.state.seats.map((seat) => isolate(seat.name));
  }

  prompt() {
    const { state } = this;
    const toPlayer = (text) => (this.shared ? `${isolate(state.seats[state.seat].name)}: ${text}` : capital(text));
    if (this.covered && state.phase === "card" && state.legal.length) {
      return toPlayer("it is your turn. Take the device; the others look away.");
    }
    if (state.phase === "row" && state.legal.length) {
      return toPlayer(`choose a row for ${state.card} (${inWords(this.cards[state.card - 1])}): ${state.legal.map((a) => `row ${a - 4}`).join(", ")}.`);
    }
    if (state.legal.length) return toPlayer(`choose a card: ${state.hand.join(", ")}.`);
    const waits = state.waits_for.map((seat) => isolate(state.seats[seat].name));
    return waits.length ? `Waiting for ${waits.join(", ")}.` : "";
  }

  draw() {
    this.delayed = Boolean(this.pressed);
    if (this.delayed || this.gone || !this.game) return;
    const { state, model } = this;
    const active = document.activeElement?.id;
    const names = this.names();
    const live = !this.showing && !this.between;
    this.game.replaceChildren(...[
      this.head(),
      rows(model, this.canChoose && state.phase === "row" ? state.legal.map((a) => a - 4) : [],
        (row) => this.choose(row + 4), this.rowHints()),
      this.seats(names, live),
      this.hand(names),
      this.coach(),
      this.logPanel(),
    ].filter(Boolean)); // null would appear as text
    if (active) document.getElementById(active)?.focus({ preventScroll: true });
    const list = this.game.querySelector(".log ol");
    if (list) list.scrollTop = list.scrollHeight;
  }

  head() {
    const { state, model } = this;
    const over = state.over && !this.showing;
    const lost = this.lost && (this.sending ? "The connection is lost; your choice is sent as soon as it is back …"
      : "The connection is lost; trying again …");
    const bad = lost || this.fault || state.trouble;
    const message = bad || (this.showing ? model.message : over ? "" : this.prompt());
    return el("section", { class: "head", "aria-label": "The game" },
      el("span", {}, `${state.rules} · round ${Math.max(1, this.showing ? model.round : state.round)}`,
        state.match.of > 1 ? ` · game ${model.game} of ${state.match.of}` : ""),
      this.watching ? el("span", { class: "note" }, "You are watching") : null,
      el("span", { class: "direction" }, capital(state.direction)),
      el("span", { class: "bar tools", style: null },
        el("label", { class: "bar note" }, "Moves", el("select", { id: "pace", onchange: (e) => store.set("pace", e.target.value) },
          PACES.map(([value, text]) => el("option", { value, selected: value === store.get("pace", "550") }, text)))),
        this.showing && !this.between ? el("button", { id: "hurry", type: "button", onclick: () => { this.hurry = true; } }, "Skip") : null),
      this.between ? this.betweenGames() : null,
      over ? this.result() : el("p", { class: `message${bad ? " bad" : ""}` }, message || " "));
  }

  betweenGames() {
    const { end } = this.model;
    const total = end.scores.map((points, seat) => points + end.points_before[seat]);
    return el("div", { class: "panel", role: "group", "aria-label": "Between two games" },
      el("p", {}, `Game ${end.game} of ${end.of} is over.`),
      el("table", {}, el("thead", {}, el("tr", {}, ["Player", "This game", "Match"].map((text) => el("th", {}, text)))),
        el("tbody", {}, this.names().map((name, seat) => el("tr", {}, el("td", {}, name),
          el("td", { class: "figure" }, end.scores[seat]), el("td", { class: "figure" }, total[seat]))))),
      el("button", { id: "go-on", class: "main", type: "button", onclick: () => this.between?.() }, "Next game"));
  }

  result() {
    const { state } = this;
    const names = this.names();
    const winners = state.winners.map((seat) => names[seat]).join(" and ");
    const text = this.shared || this.watching ? `${winners} won!`
      : state.winners.includes(state.seat) ? (state.winners.length > 1 ? "You share the victory!" : "You won!")
        : `${winners} won; you finished ${ordinal(state.ranks[state.seat])}.`;
    const setup = store.get("tables", []).find((table) => table.token === this.address)?.setup;
    return el("div", { class: "panel", role: "group", "aria-label": "The result" },
      el("p", { class: "message", id: "result" }, text),
      standings(names, state.match.points, state.ranks, state.direction, this.shared ? -1 : state.seat),
      el("p", { class: "bar" },
        el("a", { class: "button", href: `#/table/${this.id}/${this.address}/review` }, "Review the match"),
        el("a", { class: "button", href: `#/replay/${this.id}/${this.token}` }, "Replay"),
        el("button", { type: "button", id: "save", onclick: () => this.save() }, "Save the record"),
        setup ? el("button", { class: "main", id: "again", type: "button", disabled: this.changing,
          onclick: () => this.once(() => start(setup, { signal: this.signal, lost: () => { this.lost = true; this.draw(); } })) }, "Play again") : null));
  }

  async save() {
    download(`oxx-${this.id}.jsonl`, await call(`${this.path}/record`, { token: this.token, raw: true }), "application/x-ndjson");
  }

  seats(names, live) {
    const { state, model } = this;
    const before = state.match.points.map((points, seat) => points - (state.scores[seat] ?? 0));
    return el("section", { class: "seats", "aria-label": "Players" }, ...state.seats.map((seat, index) => {
      const points = live ? state.scores[index] : model.points[index];
      const due = live && state.waits_for.includes(index);
      const known = state.known_hand[index] ?? [];
      const under = state.returned[index] ?? [];
      const front = index === state.seat && !this.shared;
      const buttons = this.seatButtons(index, seat);
      return el("div", { class: `seat${index === state.seat ? " you" : ""}${due ? " due" : ""}`, "data-seat": index },
        el("span", { class: "who" }, names[index], front ? " (you)" : ""),
        el("span", { class: "points" }, points, el("span", { class: "visually-hidden" }, ` ${points === 1 ? "point" : "points"}`)),
        el("span", { class: "has" },
          el("span", { class: "backs", "aria-hidden": "true" }, Array.from({ length: state.hand_sizes[index] }, () => el("i"))),
          ` hand ${state.hand_sizes[index]} · pile ${state.pile_sizes[index]} · taken ${model.taken[index]}`,
          state.match.of > 1 ? ` · match ${before[index] + points}` : "",
          this.shared && this.holders.has(index) ? " · at this device" : "",
          under.length ? ` · under the pile: ${under.join(", ")}` : "",
          known.length && index !== state.seat ? ` · known in hand: ${known.join(", ")}` : "",
          seat.free ? " · seat is free" : seat.away && !front ? " · away"
            : due && index !== state.seat ? (seat.kind === "bot" ? " · thinking" : " · choosing") : ""),
        buttons.length ? el("span", { class: "has bar" }, buttons) : null);
    }), this.tableButtons());
  }

  /** The buttons of a seat that is free or whose person is away; of every seat after "Change seats". */
  seatButtons(index, seat) {
    const { state } = this;
    const buttons = seat.invite ? this.inviteButtons(index, seat.invite) : [];
    if (state.over || !seat.may_change || this.holders.has(index) || !(seat.free || seat.away || this.managing)) return buttons;
    const button = (id, text, body) => el("button", { type: "button", id: `${id}-${index}`, disabled: this.changing,
      onclick: () => this.changeSeat({ seat: index, ...body }) }, text);
    if (seat.kind === "human") buttons.push(button("bot", "Give it to a bot", { level: "careful" }));
    if (!seat.free) buttons.push(button("free", "Free it for a person", { free: true }));
    return buttons;
  }

  /** Links and changes of seats, folded up. */
  tableButtons() {
    const { state } = this;
    if (state.over || this.watching) return null;
    const others = state.seats.some((seat, index) => seat.may_change && !this.holders.has(index));
    return el("details", { open: store.get("moreOpen", false), ontoggle: (e) => store.set("moreOpen", e.target.open) },
      el("summary", { id: "more", class: "note" }, "Watchers and seats"),
      el("div", { class: "bar" }, this.copyButton("copy-watch", "Copy the link to watch", `#/watch/${this.id}/${state.watch}`),
        others ? el("button", { type: "button", id: "manage", "aria-pressed": String(this.managing),
          onclick: () => { this.managing = !this.managing; this.draw(); } }, "Change seats") : null,
        el("button", { type: "button", id: "leave", disabled: this.changing, onclick: () => this.leaveTable() }, "Leave the table")));
  }

  async changeSeat(body) {
    let answer = null;
    await this.once(async () => {
      answer = await change(`${this.path}/seats`, { token: this.token, body, signal: this.signal,
        lost: () => { this.lost = true; this.draw(); } });
    });
    return answer;
  }

  async leaveTable() {
    const { token, state } = this;
    if (!confirm("Leave the table? A bot plays on in your place, and you cannot get the seat back.")) return;
    const answer = await this.changeSeat({ seat: state.seat, level: "careful", leave: true });
    const others = this.tokens.filter((one) => one !== token);
    if (answer) location.hash = others.length ? `#/table/${this.id}/${others.join(".")}` : `#/watch/${this.id}/${answer.watch}`;
  }

  /** One change at a time: a second click meanwhile does nothing. */
  async once(action) {
    if (this.changing) return;
    this.changing = true;
    this.draw();
    try {
      await action();
      this.lost = false;
    } catch (error) {
      this.fail(error);
    }
    this.changing = false;
    if (!this.signal.aborted && !this.gone) this.draw();
  }

  inviteButtons(index, invite) {
    const link = `#/join/${this.id}/${invite}`;
    return [
      el("a", { class: "invite", href: `${location.origin}${location.pathname}${link}`, target: "_blank", rel: "noopener" }, "Invitation"),
      this.copyButton(`copy-${index}`, "Copy link", link),
    ];
  }

  copyButton(id, text, hash) {
    const link = `${location.origin}${location.pathname}${hash}`;
    return el("button", { type: "button", id, onclick: async (event) => {
      const button = event.target;
      try { await navigator.clipboard.writeText(link); button.textContent = "Copied"; }
      catch { prompt("The link for the other person:", link); }
    } }, text);
  }

  /** Hides the hand while the device is handed over. */
  curtain() {
    const { state } = this;
    const name = isolate(state.seats[state.seat].name);
    const due = !this.showing && !this.between && !this.sending && state.legal.length > 0;
    return el("div", { class: "curtain", role: "group", "aria-label": "The hand is hidden" },
      el("span", { class: "backs", "aria-hidden": "true" }, Array.from({ length: state.hand_sizes[state.seat] }, () => el("i"))),
      due ? el("button", { id: "uncover", class: state.phase === "card" ? "main" : "", type: "button", onclick: () => this.uncover() },
        `Show ${name}'s cards`) : el("span", { class: "note" }, "The hands are hidden."));
  }

  hand(names) {
    const { state, model } = this;
    if (this.watching) return el("section", { class: "hand", "aria-label": "Revealed cards" }, revealed(model, names) ?? el("span", { class: "note" }, "All players choose a card."));
    if (this.covered && !state.over) {
      const open = this.showing || state.phase !== "card" || model.revealed.some((one) => !one.placed);
      return el("section", { class: "hand", "aria-label": "The hand is hidden" }, this.curtain(), open ? revealed(model, names) : null);
    }
    const can = this.canChoose && state.phase === "card";
    const placing = this.showing || state.phase !== "card";
    // The chosen card stays visible until it is revealed. The server never sends the cards of others.
    const cards = state.picked !== null ? [...state.hand, state.picked].sort((a, b) => a - b) : state.hand;
    const whose = this.shared ? `${isolate(state.seats[state.seat].name)}'s hand` : "Your hand";
    return el("section", { class: "hand", "aria-label": whose },
      el("div", {}, el("h2", {}, can ? `${whose}: choose a card (keys 1–4)` : whose),
        el("div", { class: "held" }, cards.map((number) => {
          const slot = state.hand.indexOf(number);
          const option = this.advice?.turn === state.turn && this.coachOpen && state.phase === "card"
            ? this.advice.options.find(({ action }) => action === slot) : null;
          const advice = option ? `, ${wins(option)} wins${option.choice ? ", the coach's choice" : option.about_equal ? ", about equal to the coach's choice" : ""}` : "";
          return el("button", { class: `pick${number === state.picked ? " chosen" : ""}`, type: "button", id: `card-${number}`,
            disabled: !can || slot < 0, "aria-label": `${can ? "Play " : ""}${number}, ${inWords(this.cards[number - 1])}${advice}`,
            onclick: () => this.choose(slot) },
          card(number, this.cards[number - 1], { alt: "" }),
          option ? el("small", { class: option.choice ? "bad" : "" }, mark(option) + wins(option)) : null);
        }), cards.length ? null : el("span", { class: "note" }, "empty"))),
      placing || model.revealed.some((one) => !one.placed) ? revealed(model, names) : null);
  }

  rowHints() {
    if (!this.coachOpen || this.state.phase !== "row" || this.advice?.turn !== this.state.turn || !this.canChoose) return {};
    return Object.fromEntries(this.advice.options.map((option) =>
      [option.row, `${mark(option)}${wins(option)} wins`]));
  }

  coach() {
    const { state } = this;
    if (!state.coach || this.covered || this.watching || (state.over && !this.showing)) return null;
    const advice = this.advice?.turn === state.turn && this.canChoose ? this.advice : null;
    return el("section", { class: "coach panel", "aria-label": "Coach" },
      el("div", { class: "bar" }, el("button", { type: "button", id: "coach", "aria-expanded": String(this.coachOpen),
        onclick: () => this.toggleCoach() }, this.coachOpen ? "Hide the coach (C)" : "Ask the coach (C)"),
      this.coachOpen && this.judgements.has(this.token) ? el("span", { id: "judgement" }, this.judgements.get(this.token)) : null),
      this.coachOpen && advice ? adviceTable(advice, state.direction) : null,
      this.coachOpen && !advice ? el("p", { class: "note" }, this.canChoose ? this.coachFault || "The coach thinks …" : "The coach advises when it is your turn.") : null);
  }

  logPanel() {
    return el("details", { class: "log panel", open: store.get("logOpen", false), ontoggle: (e) => store.set("logOpen", e.target.open) },
      el("summary", { id: "log" }, "What happened"),
      el("ol", { tabindex: 0, "aria-label": "What happened" }, this.log.map((line) => line.round
        ? el("li", { class: "round" }, `Round ${line.round}`) : el("li", {}, line.text))));
  }
}
