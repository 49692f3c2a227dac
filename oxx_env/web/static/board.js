// The table: what lies open, told by events, and how it moves. The live game and the replay share it.
import { card, el, inWords, motion, plural, rowInWords, sleep, sum, sums } from "./dom.js";

/** What everybody sees, as the events so far leave it. The server is the judge; this only tells. */
export class Model {
  constructor(cards, players, rules) {
    Object.assign(this, { cards, players, rules, rows: [[], [], [], [], []] });
    this.clear();
  }

  clear() {
    this.points = Array(this.players).fill(0);
    this.taken = Array(this.players).fill(0);
    this.shown = []; // this round's cards: {seat, number, placed}
    this.round = 0;
    this.said = "";
    this.end = null;
  }

  apply(event) {
    if (event.kind === "deal") {
      this.clear();
      this.game = event.game;
      this.rows = event.rows.map((number) => [number]);
      this.said = "The cards are dealt.";
    } else if (event.kind === "reveal") {
      this.round = event.round;
      this.shown = event.cards.map((number, seat) => ({ seat, number, placed: false }))
        .sort((a, b) => a.number - b.number);
      this.said = `Round ${event.round}: all cards are revealed.`;
    } else if (event.kind === "place") {
      this.shown.find((one) => one.number === event.number).placed = true;
      if (event.row !== null) {
        const row = event.taken.length ? [] : this.rows[event.row];
        this.rows[event.row] = [...row, event.number];
      }
      this.taken[event.seat] += event.taken.length;
      this.points[event.seat] += sum(event.taken.map((number) => sum(this.cards[number - 1])));
      this.said = event.text;
    } else if (event.kind === "end") {
      this.points = event.scores;
      this.end = event;
      this.shown = [];
      this.said = event.of > 1 ? `Game ${event.game} of ${event.of} is over.` : "The game is over.";
    }
  }
}

/** The five rows. `choices` are the rows to choose from; `choose(row)` is called with one. */
export function rows(model, choices, choose, hints = {}) {
  return el("section", { class: "board", "aria-label": "The five rows" }, model.rows.map((row, index) => {
    const free = choices.includes(index);
    const color = model.rules.startsWith("color");
    const hint = hints[index];
    const inside = [
      el("span", { class: "name", "aria-hidden": "true" }, "row", el("b", {}, index)),
      el("span", { class: "cards" },
        row.map((number) => card(number, model.cards[number - 1], { alt: "" })),
        color ? null : Array.from({ length: Math.max(0, 5 - row.length) }, () => el("i", { class: "slot" })),
        color ? null : el("i", { class: "slot sixth", "aria-hidden": "true" }, "6th takes")),
      el("span", {}, sums(row, model.cards), hint ? el("small", {}, hint) : null),
    ];
    const label = rowInWords(index, row, model.cards) + (hint ? ` ${hint}.` : "");
    return free
      ? el("button", { class: "row", type: "button", id: `row-${index}`, "data-row": index,
          "aria-label": `Choose this row. ${label}`, onclick: () => choose(index) }, inside)
      : el("div", { class: "row", role: "group", "data-row": index, "aria-label": label }, inside);
  }));
}

/** The cards revealed in this round, lowest first. */
export function shown(model, names) {
  if (!model.shown.length) return null;
  const next = model.shown.find((one) => !one.placed);
  return el("div", {}, el("h2", {}, "Revealed, lowest number first"),
    el("div", { class: "shown" }, model.shown.map((one) =>
      el("figure", { class: one.placed ? "gone" : one === next ? "now" : "" },
        one.placed ? el("i", { class: "slot", style: null }) : card(one.number, model.cards[one.number - 1]),
        el("figcaption", {}, names[one.seat])))));
}

/** Change the page and let every card glide from where it was to where it is now. */
export async function glide(root, change, pace, event) {
  const quick = !motion() || pace === 0;
  const before = new Map();
  if (!quick) {
    for (const node of root.querySelectorAll(".board [data-card], .hand [data-card]")) {
      before.set(node.dataset.card, { box: node.getBoundingClientRect(), src: node.src });
    }
  }
  change();
  if (quick) return;
  const running = [];
  const here = new Set();
  for (const node of root.querySelectorAll(".board [data-card], .hand [data-card]")) {
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

/** A list of who came in where, with words on which way the points count. */
export function standings(names, points, ranks, direction, you) {
  const order = points.map((_, seat) => seat).sort((a, b) => ranks[a] - ranks[b]);
  return el("table", {},
    el("thead", {}, el("tr", {}, el("th", { class: "figure" }, "Place"), el("th", {}, "Player"),
      el("th", { class: "figure" }, "Points"))),
    el("tbody", {}, order.map((seat) => el("tr", { class: ranks[seat] === 1 ? "winner" : "" },
      el("td", { class: "figure" }, ranks[seat]),
      el("td", {}, names[seat], seat === you ? " (you)" : ""),
      el("td", { class: "figure" }, points[seat])))),
    el("caption", { class: "note" }, direction[0].toUpperCase() + direction.slice(1)));
}

export { inWords, plural };
