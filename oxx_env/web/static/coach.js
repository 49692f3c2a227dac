// The coach: advice before a move, its cost after it, and the review of a match.
import { call } from "./api.js";
import { capital, el, info, plural, svg } from "./dom.js";

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const nameOf = (option) => (option.row === null ? `card ${option.card}` : `row ${option.row}`);

/** The choices in a table, the best first. */
export function adviceTable({ options, basis }, direction) {
  // With roles: on a phone CSS lays the rows out as blocks, and they must remain a table for screen readers.
  const head = (text, figure) => el("th", { role: "columnheader", class: figure ? "figure" : "" }, text);
  const cell = (attributes, ...inside) => el("td", { role: "cell", ...attributes }, ...inside);
  const ranked = [...options].sort((a, b) => b.difference - a.difference || b.choice - a.choice);
  return el("div", { class: "scroll" }, el("table", { id: "advice", class: "advice", role: "table", "aria-label": "The coach's advice" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head("Choice"), head("Difference", true), head("Points", true), head("Wins"), head("Why"))),
    el("tbody", { role: "rowgroup" }, ranked.map((option) => el("tr", { role: "row", class: option.choice ? "best" : "" },
      el("th", { role: "rowheader", scope: "row" }, nameOf(option), option.choice ? el("span", { class: "visually-hidden" }, " (best)") : null),
      cell({ class: "figure" }, difference(option)),
      cell({ class: "figure" }, option.points.toFixed(1)),
      cell({}, percent(option.win_share), meter(option.win_share)),
      cell({}, el("ul", {}, option.why.map((line) => el("li", {}, line)))))))),
  ...options.flatMap((option) => option.notes).map((line) => el("p", { class: "sure" }, line)),
  el("p", { class: "note" }, `${basis} In this game ${direction}.`));
}

function difference(option) {
  if (option.choice) return "0";
  const sign = option.difference < 0 ? "−" : "+";
  const text = `${sign}${Math.abs(option.difference).toFixed(1)} ± ${(info.errors * option.se).toFixed(1)}`;
  return option.about_equal ? `${text}, about equal` : text;
}

function meter(share) {
  const bar = el("i");
  bar.style.width = `${Math.round(100 * share)}%`;
  return el("span", { class: "meter", "aria-hidden": "true" }, bar);
}

/** What a decision of a review cost. */
export function costSentence({ options, action, cost }) {
  const played = options.find((option) => option.action === action);
  const best = options.find((option) => option.choice);
  const name = capital(nameOf(played));
  if (played === best) return `${name} was the best choice.`;
  if (!cost.mistake) return `${name} was about equal to ${nameOf(best)}.`;
  const { points, points_error: error, win_share: share, win_error: shareError } = cost;
  const lost = `${name} lost ${points.toFixed(1)} points (± ${error.toFixed(1)}) against ${nameOf(best)}`;
  const wins = `${Math.abs(100 * share).toFixed(1)} percentage points (± ${(100 * shareError).toFixed(1)})`;
  if (Math.abs(share) <= shareError) return `${lost}; the chances of winning are about equal.`;
  return share > 0 ? `${lost} and lowered the chance of winning by about ${wins}.`
    : `${lost}, but raised the chance of winning by about ${wins}: points and wins disagree here.`;
}

/** Replace what a node shows by the review of a seat: `load` requests it, `draw` turns it into nodes. */
export async function showReview(node, load, draw) {
  node.replaceChildren(el("p", { role: "status" }, "The coach goes through the decisions …"));
  try {
    node.replaceChildren(...draw(await load()));
    return true;
  } catch (error) {
    node.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
    return false;
  }
}

export async function reviewPage(root, path, tokens, id) {
  const [token] = tokens.split(".");
  const state = await call(path, { token });
  const link = (decision) => el("a", { href: `#/replay/${id}/${token}/${decision.game}/${decision.round}` }, "Show it");
  const show = (seat) => showReview(body, () => call(`${path}/review?seat=${seat}`, { token }),
    ({ decisions, basis }) => drawReview(decisions, state, seat, basis, state.over ? link : () => ""));
  const body = el("div");
  const choice = el("select", { id: "seat", onchange: (e) => show(Number(e.target.value)) },
    state.seats.map((seat, index) => el("option", { value: index, selected: index === (state.seat ?? 0) },
      seat.name + (index === state.seat ? " (you)" : ""))));
  root.replaceChildren(el("h1", {}, "Review"), el("p", { class: "bar" }, el("label", { class: "bar" }, "Seat", choice),
    el("a", { href: `#/table/${id}/${tokens}` }, "Back to the table")), body);
  await show(state.seat ?? 0);
}

/** The review of a seat as nodes. `state` has `match.of`, `direction`, `over` and, when it is over, `winners`;
 * `link(decision)` is a node that leads to a decision on the table. */
export function drawReview(decisions, state, seat, basis, link) {
  if (!decisions.length) return [el("p", {}, "Nothing has been decided yet.")];
  const mistakes = decisions.filter(({ cost }) => cost.mistake);
  const worst = [...mistakes].sort((a, b) => b.cost.points - a.cost.points).slice(0, 3);
  const total = decisions.reduce((all, { cost }) => all + cost.points, 0);
  const when = ({ game, round }) => `${state.match.of > 1 ? `game ${game}, ` : ""}round ${round}`;
  return [
    el("p", {}, `${plural(decisions.length, "decision")}, ${plural(mistakes.length, "mistake")}. The mistakes lost ${total.toFixed(1)} points together; all other decisions were the best or about equal.`),
    el("h2", {}, "Chances to win"),
    graph(decisions, worst, state, seat),
    el("h2", {}, ["No mistake beyond the error of the figures", "The worst move", "The two worst moves", "The three worst moves"][worst.length]),
    el("ol", { id: "worst" }, worst.map((decision) => el("li", {},
      `${capital(when(decision))}: ${costSentence(decision)} `, link(decision),
      el("details", {}, el("summary", {}, "All choices"), adviceTable({ options: decision.options, basis: "" }, state.direction))))),
    el("p", { class: "note" }, `The chances are the coach's estimates before each decision. ${basis}`),
  ];
}

function graph(decisions, worst, state, seat) {
  const width = 760, height = 240, left = 80, right = 12, top = 12, low = 30;
  const shares = decisions.map((decision) => decision.win_share);
  const ends = state.over ? [...shares, state.winners.includes(seat) ? 1 / state.winners.length : 0] : shares;
  const x = (index) => left + (index * (width - left - right)) / Math.max(1, ends.length - 1);
  const y = (share) => top + (1 - share) * (height - top - low);
  const label = `Chance to win: ${percent(shares[0])} at first, lowest ${percent(Math.min(...shares))}, highest ${percent(Math.max(...shares))}`
    + (state.over ? `, ${percent(ends.at(-1))} in the end.` : ".");
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "graph", role: "img", "aria-label": label });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    node.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
      svg("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`));
  }
  decisions.forEach(({ game, round }, index) => {
    const before = decisions[index - 1];
    if (round % 4 === 1 && !(before?.game === game && before.round === round)) {
      node.append(svg("text", { x: x(index), y: height - 10, "text-anchor": "middle" }, `round ${round}`));
    }
  });
  node.append(svg("polyline", { class: "line", points: ends.map((share, index) => `${x(index)},${y(share)}`).join(" ") }));
  ends.forEach((share, index) => {
    if (worst.includes(decisions[index])) node.append(svg("path", { class: "worst", d: `M${x(index)} ${y(share) - 8}l8 14h-16z` }));
    else node.append(svg("circle", { class: "point", cx: x(index), cy: y(share), r: 3 }));
  });
  return node;
}
