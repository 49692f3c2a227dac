// What the coach says: advice before a move, its cost after it, and the review of a match.
import { call } from "./api.js";
import { el, plural, svg } from "./dom.js";

const ERRORS = 2; // standard errors behind ±, as the server has it in `advice.ERRORS`
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const what = (option) => (option.row === null ? `card ${option.card}` : `row ${option.row}`);

export function adviceTable(told, direction) {
  // With the roles told: on a phone the rows are laid out as blocks, and are a table all the same.
  const head = (text, figure) => el("th", { role: "columnheader", class: figure ? "figure" : "" }, text);
  const cell = (attributes, ...inside) => el("td", { role: "cell", ...attributes }, ...inside);
  return el("div", { class: "scroll" }, el("table", { id: "advice", class: "advice", role: "table", "aria-label": "The coach's advice" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head("Choice"), head("Difference", true), head("Points", true), head("Wins"), head("Why"))),
    el("tbody", { role: "rowgroup" }, ranked(told.options).map((option) => el("tr", { role: "row", class: option.choice ? "best" : "" },
      el("th", { role: "rowheader", scope: "row" }, what(option), option.choice ? el("span", { class: "unseen" }, " (best)") : null),
      cell({ class: "figure" }, difference(option)),
      cell({ class: "figure" }, option.points.toFixed(1)),
      cell({}, percent(option.win_share), meter(option.win_share)),
      cell({}, el("ul", {}, option.why.map((line) => el("li", {}, line)))))))),
  ...told.options.flatMap((option) => option.notes).map((line) => el("p", { class: "sure" }, line)),
  el("p", { class: "note" }, `${told.basis} In this game ${direction}.`));
}

/** The best first, as in the terminal. */
const ranked = (options) => [...options].sort((a, b) => b.difference - a.difference || b.choice - a.choice);

function difference(option) {
  if (option.choice) return "0";
  const sign = option.difference < 0 ? "−" : "+";
  const told = `${sign}${Math.abs(option.difference).toFixed(1)} ± ${(ERRORS * option.se).toFixed(1)}`;
  return option.about_equal ? `${told}, about equal` : told;
}

function meter(share) {
  const inner = el("i");
  inner.style.width = `${Math.round(100 * share)}%`;
  return el("span", { class: "meter", "aria-hidden": "true" }, inner);
}

export function costSentence(told) {
  const played = told.options.find((option) => option.action === told.action);
  const best = told.options.find((option) => option.choice);
  if (played === best) return `${capital(what(played))} was the best choice.`;
  const { mistake, points, points_error: error, win_share: share, win_error: shareError } = told.cost;
  if (!mistake) return `${capital(what(played))} was about equal to ${what(best)}.`;
  const lost = `${capital(what(played))} lost ${points.toFixed(1)} points (± ${error.toFixed(1)}) against ${what(best)}`;
  const wins = `${Math.abs(100 * share).toFixed(1)} percentage points (± ${(100 * shareError).toFixed(1)})`;
  if (Math.abs(share) <= shareError) return `${lost}; the chances of winning are about equal.`;
  return share > 0 ? `${lost} and lowered the chance of winning by about ${wins}.`
    : `${lost}, but raised the chance of winning by about ${wins}: points and wins disagree here.`;
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

export async function reviewPage(root, path, held, id) {
  const [token] = held.split(".");
  const state = await call(path, { token });
  const show = async (seat) => {
    body.replaceChildren(el("p", { role: "status" }, "The coach goes through the decisions …"));
    try {
      const { decisions, basis } = await call(`${path}/review?seat=${seat}`, { token });
      body.replaceChildren(...drawReview(decisions, state, seat, basis, state.over
        ? (told) => el("a", { href: `#/replay/${id}/${token}/${told.game}/${told.round}` }, "See it") : () => ""));
    } catch (error) {
      body.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
    }
  };
  const body = el("div");
  const choice = el("select", { id: "seat", onchange: (e) => show(Number(e.target.value)) },
    state.seats.map((seat, index) => el("option", { value: index, selected: index === (state.seat ?? 0) },
      seat.name + (index === state.seat ? " (you)" : ""))));
  root.replaceChildren(el("h1", {}, "Review"),
    el("p", { class: "bar" }, el("label", { class: "bar" }, "Seat", state.over ? choice : el("bdi", {}, state.seats[state.seat].name)),
      el("a", { href: `#/table/${id}/${held}` }, "Back to the table")), body);
  await show(state.seat ?? 0);
}

/** The review of a seat as nodes. `state` tells `match.of`, `direction`, and when it is `over` the `winners`;
 * `see(decision)` is what leads to a decision on the table. */
export function drawReview(decisions, state, seat, basis, see) {
  if (!decisions.length) return [el("p", {}, "Nothing has been decided yet.")];
  const worst = decisions.map((told, index) => ({ told, index })).filter(({ told }) => told.cost.mistake)
    .sort((a, b) => b.told.cost.points - a.told.cost.points).slice(0, 3);
  const total = decisions.reduce((all, told) => all + told.cost.points, 0);
  const mistakes = decisions.filter((told) => told.cost.mistake).length;
  const when = (told) => `${state.match.of > 1 ? `game ${told.game}, ` : ""}round ${told.round}`;
  return [
    el("p", {}, `${plural(decisions.length, "decision")}, ${plural(mistakes, "mistake")}, ${total.toFixed(1)} points lost by them together; all others were the best or about equal.`),
    el("h2", {}, "Chances to win"),
    graph(decisions, worst.map(({ index }) => index), state, seat),
    el("h2", {}, ["No mistake beyond the error of the figures", "The worst move", "The two worst moves", "The three worst moves"][worst.length]),
    el("ol", { id: "worst" }, worst.map(({ told }) => el("li", {},
      `${capital(when(told))}: ${costSentence(told)} `, see(told),
      el("details", {}, el("summary", {}, "All choices"), adviceTable({ options: told.options, basis: "" }, state.direction))))),
    el("p", { class: "note" }, `The chances are the coach's estimates before each decision. ${basis}`),
  ];
}

function graph(decisions, worst, state, seat) {
  const width = 760, height = 240, left = 80, right = 12, top = 12, low = 30;
  const shares = decisions.map((told) => told.win_share);
  const ends = state.over ? [...shares, state.winners.includes(seat) ? 1 / state.winners.length : 0] : shares;
  const x = (index) => left + (index * (width - left - right)) / Math.max(1, ends.length - 1);
  const y = (share) => top + (1 - share) * (height - top - low);
  const words = `Chance to win: ${percent(shares[0])} at first, lowest ${percent(Math.min(...shares))}, highest ${percent(Math.max(...shares))}`
    + (state.over ? `, ${percent(ends.at(-1))} in the end.` : ".");
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "graph", role: "img", "aria-label": words });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    node.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
      svg("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`));
  }
  let last = "";
  decisions.forEach((told, index) => {
    const name = `${told.game}.${told.round}`;
    if (name !== last && (told.round % 4 === 1 || told.round === 1)) {
      node.append(svg("text", { x: x(index), y: height - 10, "text-anchor": "middle" }, `round ${told.round}`));
    }
    last = name;
  });
  node.append(svg("polyline", { class: "line", points: ends.map((share, index) => `${x(index)},${y(share)}`).join(" ") }));
  ends.forEach((share, index) => {
    if (worst.includes(index)) node.append(svg("path", { class: "worst", d: `M${x(index)} ${y(share) - 8}l8 14h-16z` }));
    else node.append(svg("circle", { class: "point", cx: x(index), cy: y(share), r: 3 }));
  });
  return node;
}
