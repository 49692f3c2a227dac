// The first page: a new table, the tables of this browser, and joining one by its link.
import { change, person } from "./api.js";
import { el, info, once, store } from "./dom.js";

/** The deck typed in on this browser, if it is complete. */
const ownDeck = () => {
  const own = store.get("deck", null);
  return own?.cards?.length === info.cards && own.cards.every((heads) => heads.some(Boolean)) ? own : null;
};

/** Make a table and go there. */
export async function start(setup, { signal, lost } = {}) {
  const made = await change("api/tables", { body: { ...setup, person: person() }, signal, lost });
  const token = made.seats.map((one) => one.token).join("."); // of all who sit at this device
  remember({ id: made.id, token, seat: made.seat, setup });
  location.hash = `#/table/${made.id}/${token}`;
}

export function remember(table) {
  const others = store.get("tables", []).filter((one) => one.id !== table.id);
  store.set("tables", [{ ...table, when: Date.now() }, ...others].slice(0, 12));
}

function select(id, choices, chosen) {
  return el("select", { id, name: id }, choices.map(([value, text]) =>
    el("option", { value, selected: value === chosen }, text)));
}

const LOST = "The connection is lost; trying again …";

export async function home(root, parts, signal) {
  const last = store.get("setup", { players: 4, rules: "base", deck: "balanced", games: 1, coach: true, name: "" });
  const strongest = (info.levels.find((level) => level.name === "champion") ?? info.levels.at(-1)).name;
  const own = ownDeck();
  const kinds = [...info.levels.map((level) => [level.name, `${level.title} – ${level.about}`]), ["here", "A person at this device"], ["human", "A person, by link"]];
  const isPerson = (kind) => kind === "here" || kind === "human";
  const seats = el("div", { class: "fields" });
  const levels = last.levels ?? [];
  const all = select("all", kinds.slice(0, -2), last.all ?? strongest);

  const drawSeats = () => {
    const players = Number(form.elements.players.value);
    const now = [...seats.querySelectorAll("select")].map((one) => one.value);
    const names = namesNow();
    seats.replaceChildren(...Array.from({ length: players - 1 }, (_, index) => {
      const kind = now[index] ?? levels[index] ?? all.value;
      const name = el("label", { hidden: kind !== "here" }, `Name of player ${index + 2}`,
        el("input", { type: "text", class: "name", maxlength: info.max_name, value: names[index] ?? last.names?.[index] ?? "",
          autocomplete: "off", placeholder: `Player ${index + 2}` }));
      const choice = select(`seat${index + 1}`, kinds, kind);
      choice.addEventListener("change", () => { name.hidden = choice.value !== "here"; });
      return el("div", {}, el("label", {}, `Seat ${index + 1}`, choice), name);
    }));
  };
  const namesNow = () => [...seats.querySelectorAll("input.name")].map((one) => one.value);
  all.addEventListener("change", () => {
    for (const one of seats.querySelectorAll("select")) if (!isPerson(one.value)) one.value = all.value;
  });

  const form = el("form", { class: "panel", "aria-label": "New table" },
    el("h2", {}, "New table"),
    el("div", { class: "fields" },
      el("label", {}, "Players", select("players", Array.from({ length: 9 }, (_, i) => [String(i + 2), String(i + 2)]), String(last.players))),
      el("label", {}, "Opponents", all),
      el("label", {}, "Rules", select("rules", info.rules.map((one) => [one.name, `${one.name} – ${one.direction}`]), last.rules)),
      el("label", {}, "Deck", select("deck", [...info.decks.map((name) => [name, name]),
        ...(own ? [["own", `own deck: ${own.name}`]] : [])], last.deck === "own" && !own ? "balanced" : last.deck)),
      el("label", {}, "Games", el("input", { type: "number", name: "games", min: 1, max: info.max_match, value: last.games })),
      el("label", {}, "Your name", el("input", { type: "text", name: "name", maxlength: info.max_name, value: last.name,
        autocomplete: "nickname", placeholder: "Player 1" })),
      el("label", { class: "tick" }, el("input", { type: "checkbox", name: "coach", checked: last.coach }), "With the coach")),
    el("details", { open: levels.some(isPerson) }, el("summary", {}, "Seat by seat: different bots, more people"), seats),
    el("p", {}, el("button", { class: "main", type: "submit" }, "Start")),
    el("p", { class: "bad", role: "alert" }));
  form.addEventListener("change", (event) => { if (event.target.name === "players") drawSeats(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    once(form.querySelector("[type=submit]"), send);
  });
  const send = async () => {
    const alert = form.querySelector("[role=alert]");
    const value = (name) => form.elements[name].value;
    const levelsNow = [...seats.querySelectorAll("select")].map((one) => one.value);
    store.set("setup", { players: Number(value("players")), rules: value("rules"), deck: value("deck"), games: Number(value("games")),
      coach: form.elements.coach.checked, name: value("name"), all: all.value, levels: levelsNow, names: namesNow() });
    try {
      await start({
        rules: value("rules"), deck: value("deck") === "own" && own ? { name: own.name, cards: own.cards } : value("deck"), games: Number(value("games")), coach: form.elements.coach.checked,
        seats: [{ kind: "human", name: value("name") }, ...levelsNow.map((level, index) =>
          level === "here" ? { kind: "human", here: true, name: namesNow()[index] }
            : level === "human" ? { kind: "human" } : { kind: "bot", level })],
      }, { signal, lost: () => { alert.textContent = LOST; } });
    } catch (error) {
      if (!signal.aborted) alert.textContent = error.message;
    }
  };
  drawSeats();

  const tables = store.get("tables", []);
  root.replaceChildren(
    el("h1", {}, "6 nimmt! Baron Oxx"),
    el("p", {}, "All players choose a card in secret. Then the cards are placed, from the lowest number to the highest, each on a row whose last card shares a color with it. The player who fills a row takes it. ",
      el("a", { href: "#/rules" }, "The rules")),
    form,
    tables.length ? el("section", { class: "panel" }, el("h2", {}, "Your tables"), el("ul", {}, tables.map((table) =>
      el("li", {}, el("a", { href: `#/table/${table.id}/${table.token}` },
        `${table.setup?.rules ?? "a table"}, ${table.setup ? `${table.setup.seats.length} players` : "joined by link"}, ${new Date(table.when).toLocaleString()}`))))) : "");
}

export async function join(root, [id, invite], signal) {
  const before = store.get("tables", []).find((table) => table.id === id);
  const name = el("input", { type: "text", name: "name", maxlength: info.max_name, autocomplete: "nickname",
    value: before ? "" : store.get("setup", {}).name ?? "" });
  const alert = el("p", { class: "bad", role: "alert" });
  const button = el("button", { class: "main", type: "submit" }, before ? "Take another seat" : "Take a seat");
  const form = el("form", { class: "panel" }, el("label", {}, before ? "Name of the other player" : "Your name", name),
    before ? el("p", { class: "note" }, "For another person at this device. The hands are then hidden until their player uncovers them.") : null,
    el("p", {}, button), alert);
  const send = async () => {
    try {
      const made = await change(`api/tables/${encodeURIComponent(id)}/join`, { signal, lost: () => { alert.textContent = LOST; },
        body: { invite, name: name.value, person: person(), another: Boolean(before) } });
      const tokens = before ? before.token.split(".") : [];
      const token = [...tokens.filter((one) => one !== made.token), made.token].join(".");
      remember({ ...before, id: made.id, token, seat: before?.seat ?? made.seat });
      location.hash = `#/table/${made.id}/${token}`;
    } catch (error) {
      if (signal.aborted) return;
      alert.textContent = error.message;
      if (error.data?.watch) alert.after(el("p", {}, el("a", { href: `#/watch/${id}/${error.data.watch}` }, "Watch the table")));
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    once(button, send);
  });
  root.replaceChildren(el("h1", {}, "You are invited to a table"), ...(before
    ? [el("p", {}, "This browser already has a seat at this table: ", el("a", { href: `#/table/${id}/${before.token}` }, "go to it"), ".")] : []), form);
}
