// The public cards, as the events leave them, and their movements. The live game and the replay share this.
import { capital, card, el, info, motion, rowInWords, sleep, sum, sums } from "./dom.js";

/** The public cards and points after the events so far. The server applies the rules; this follows the events. */
export class Model {
  constructor(cards, players, rules) {
    Object.assign(this, { cards, players, rules, rows: [[], [], [], [], []] });
    this.clear();
  }

  clear() {
    this.points = Array(this.players).fill(0);
    this.taken = Array(this.players).fill(0);
    this.revealed = []; // this round's cards: {seat, number, placed}
    this.round = 0;
    this.message = "";
    this.end = null;
  }

  apply(event) {
    if (event.kind === "deal") {
      this.clear();
      this.game = event.game;
      this.rows = event.rows.map((number) => [number]);
      this.message = "The cards are dealt.";
    } else if (event.kind === "reveal") {
      this.round = event.round;
      this.revealed = event.cards.map((number, seat) => ({ seat, number, placed: false }))
        .sort((a, b) => a.number - b.number);
      this.message = `Round ${event.round}: all cards are revealed.`;
    } else if (event.kind === "place") {
      this.revealed.find((one) => one.number === event.number).placed = true;
      if (event.row !== null) {
        const row = event.taken.length ? [] : this.rows[event.row];
        this.rows[event.row] = [...row, event.number];
      }
      this.taken[event.seat] += event.taken.length;
      this.points[event.seat] += sum(event.taken.map((number) => sum(this.cards[number - 1])));
      this.message = event.text;
    } else if (event.kind === "end") {
      this.points = event.scores;
      this.end = event;
      this.revealed = [];
      this.message = event.of > 1 ? `Game ${event.game} of ${event.of} is over.` : "The game is over.";
    }
  }
}

/** The five rows. `choices`: rows to choose from; `choose(row)` is called with one; `hints`: row -> text. */
export function rows(model, choices, choose, hints = {}) {
  const limit = info.rules.find((one) => one.name === model.rules).full_row; // cards of a full row; null: no limit
  return el("section", { class: "board", "aria-label": "The five rows" }, model.rows.map((row, index) => {
    const hint = hints[index];
    const inside = [
      el("span", { class: "name", "aria-hidden": "true" }, "row", el("b", {}, index)),
      el("span", { class: "cards" },
        row.map((number) => card(number, model.cards[number - 1], { alt: "" })),
        limit ? Array.from({ length: Math.max(0, limit - row.length) }, () => el("i", { class: "slot" })) : null,
        limit ? el("i", { class: "slot sixth", "aria-hidden": "true" }, "6th takes") : null),
      el("span", {}, sums(row, model.cards), hint ? el("small", {}, hint) : null),
    ];
    const label = rowInWords(index, row, model.cards) + (hint ? ` ${hint}.` : "");
    return choices.includes(index)
      ? el("button", { class: "row", type: "button", id: `row-${index}`, "data-row": index,
          "aria-label": `Choose this row. ${label}`, onclick: () => choose(index) }, inside)
      : el("div", { class: "row", role: "group", "data-row": index, "aria-label": label }, inside);
  }));
}

/** The cards revealed in this round, lowest first. */
export function revealed(model, names) {
  if (!model.revealed.length) return null;
  const next = model.revealed.find((one) => !one.placed);
  return el("div", {}, el("h2", {}, "Revealed, lowest number first"),
    el("div", { class: "revealed" }, model.revealed.map((one) =>
      el("figure", { class: one.placed ? "gone" : one === next ? "now" : "" },
        one.placed ? el("i", { class: "slot", style: null }) : card(one.number, model.cards[one.number - 1]),
        el("figcaption", {}, names[one.seat])))));
}

/** Change the page, and move every card from its old place to its new one in `pace` milliseconds. */
export async function glide(root, change, pace, event) {
  const quick = !motion() || pace === 0;
  const movable = () => root.querySelectorAll(".board [data-card], .hand [data-card]");
  const before = new Map();
  if (!quick) {
    for (const node of movable()) {
      before.set(node.dataset.card, { box: node.getBoundingClientRect(), src: node.src });
    }
  }
  change();
  if (quick) return;
  const running = [];
  const here = new Set();
  for (const node of movable()) {
    here.add(node.dataset.card);
    const from = before.get(node.dataset.card)?.box;
    const to = node.getBoundingClientRect();
    if (!from) {
      running.push(node.animate([{ opacity: 0, transform: "rotateY(90deg)" }, { opacity: 1, transform: "none" }],
        { duration: pace * 0.6, easing: "ease-out" }));
    } else if (Math.abs(from.x - to.x) + Math.abs(from.y - to.y) > 2) {
      running.push(node.animate([
        { transform: `translate(${from.x - to.x}px, ${from.y - to.y}px) scale(${from.width / to.width})`,
          transformOrigin: "0 0", zIndex: 5 },
        { transform: "none", transformOrigin: "0 0", zIndex: 5 }], { duration: pace, easing: "ease-in-out" }));
    }
  }
  if (event?.kind === "place" && event.taken.length) {
    const goal = root.querySelector(`[data-seat="${event.seat}"]`)?.getBoundingClientRect();
    for (const number of event.taken) {
      const was = before.get(String(number));
      if (!was || here.has(String(number)) || !goal) continue;
      const ghost = el("img", { class: "card", src: was.src, alt: "", "aria-hidden": "true" });
      Object.assign(ghost.style, { position: "fixed", left: `${was.box.x}px`, top: `${was.box.y}px`,
        width: `${was.box.width}px`, height: `${was.box.height}px`, zIndex: 6, pointerEvents: "none" });
      document.body.append(ghost);
      const way = ghost.animate([{ transform: "none", opacity: 1 },
        { transform: `translate(${goal.x - was.box.x}px, ${goal.y - was.box.y}px) scale(.3)`, opacity: 0.2 }],
        { duration: pace * 1.3, easing: "ease-in" });
      way.finished.catch(() => {}).then(() => ghost.remove());
      running.push(way);
    }
  }
  await Promise.race([Promise.all(running.map((one) => one.finished.catch(() => {}))), sleep(pace * 2 + 200)]);
}

/** The players by rank, with a note on how points count. */
export function standings(names, points, ranks, direction, you) {
  const order = points.map((_, seat) => seat).sort((a, b) => ranks[a] - ranks[b]);
  return el("table", {},
    el("thead", {}, el("tr", {}, el("th", { class: "figure" }, "Rank"), el("th", {}, "Player"),
      el("th", { class: "figure" }, "Points"))),
    el("tbody", {}, order.map((seat) => el("tr", { class: ranks[seat] === 1 ? "winner" : "" },
      el("td", { class: "figure" }, ranks[seat]),
      el("td", {}, names[seat], seat === you ? " (you)" : ""),
      el("td", { class: "figure" }, points[seat])))),
    el("caption", { class: "note" }, capital(direction)));
}
