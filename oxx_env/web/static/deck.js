// Own deck: type in the cards of a box, check them, save them as CSV.
import { call } from "./api.js";
import { announce, card, dot, download, el, info, inWords, plural, store, sum } from "./dom.js";

const blank = () => info.colors.map(() => 0);
const isBaron = (number) => info.barons.includes(number);
const blankDeck = () => Array.from({ length: info.cards }, (_, index) => (isBaron(index + 1) ? info.colors.map(() => 1) : blank()));
const lettersOf = (heads) => heads.map((count, color) => info.letters[color].repeat(count)).join("");

// The text of a file in an encoding that spreadsheets use: UTF-8, UTF-16 with a mark, or Windows-1252.
async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = bytes[0] << 8 | bytes[1];
  const wide = { 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[mark];
  for (const encoding of wide ? [wide] : ["utf-8", "windows-1252"]) {
    try {
      return new TextDecoder(encoding, { fatal: true }).decode(bytes);
    } catch { /* try the next encoding */ }
  }
  return file.text();
}

export function deckPage(root) {
  const draft = store.get("deck", null) ?? { name: "my deck", cards: blankDeck() };
  const next = (from, step = 1) => {
    let number = from;
    do number = ((number - 1 + step + info.cards) % info.cards) + 1; while (isBaron(number));
    return number;
  };
  const firstEmpty = () => draft.cards.findIndex((heads) => !sum(heads)) + 1;
  let at = firstEmpty() || 1;

  const picture = el("span");
  const input = el("input", { id: "heads", type: "text", autocomplete: "off", autocapitalize: "characters", spellcheck: "false",
    maxlength: 24, "aria-describedby": "how", "aria-label": "Heads as letters" });
  const title = el("h2", { id: "which" });
  const fault = el("p", { class: "bad", role: "alert", id: "fault" });
  const grid = el("ol", { class: "deckgrid", "aria-label": "All cards" });
  const progress = el("p", { id: "progress", role: "status" });
  const figures = el("div", { id: "figures" });
  const name = el("input", { type: "text", id: "deckname", maxlength: 40, value: draft.name, onchange: () => {
    draft.name = name.value.trim() || "my deck"; keep();
  } });

  const keep = () => store.set("deck", draft);

  const read = (text) => {
    const heads = blank();
    for (const letter of text.toUpperCase().replace(/\s/g, "")) {
      const color = info.letters.indexOf(letter);
      if (color < 0) return { error: `“${letter}” is no color; the letters are ${[...info.letters].join(", ")} (K is black).` };
      heads[color] += 1;
      if (heads[color] > info.max_heads) return { error: `At most ${info.max_heads} heads of one color.` };
    }
    return sum(heads) ? { heads } : { error: "A card has at least one head." };
  };

  const draw = () => {
    title.textContent = isBaron(at) ? `Card ${at}, a Baron` : `Card ${at}`;
    const heads = read(input.value).heads ?? draft.cards[at - 1];
    picture.replaceChildren(sum(heads) ? card(at, heads) : el("i", { class: "slot card" }));
    input.disabled = isBaron(at);
    const done = draft.cards.filter((one) => sum(one)).length;
    const empty = firstEmpty();
    progress.textContent = `${done} of ${info.cards} cards entered` + (empty ? `; the next one is ${empty}.` : ".");
    grid.replaceChildren(...draft.cards.map((one, index) => el("li", {}, el("button", {
      type: "button", class: `${sum(one) ? "" : "empty"}${index + 1 === at ? " here" : ""}`, disabled: isBaron(index + 1),
      "aria-label": `Card ${index + 1}: ${sum(one) ? inWords(one) : "missing"}`, onclick: () => goTo(index + 1) },
    el("b", {}, index + 1), sum(one) ? lettersOf(one) : "–"))));
    figures.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "Heads by color"),
      info.colors.map((_, color) => el("th", {}, dot(color))))),
    el("tbody", {}, el("tr", {}, el("td", {}, plural(sum(draft.cards.map(sum)), "head")),
      info.colors.map((_, color) => el("td", { class: "figure" }, sum(draft.cards.map((one) => one[color]))))))));
    save.disabled = empty > 0;
  };

  const goTo = (number) => {
    at = number;
    input.value = lettersOf(draft.cards[at - 1]);
    fault.textContent = "";
    draw();
    input.focus();
    input.select();
  };

  const enter = () => {
    const { heads, error } = read(input.value);
    if (error) {
      fault.textContent = error;
      return;
    }
    draft.cards[at - 1] = heads;
    keep();
    const warning = sum(heads) > 3 ? `Card ${at} has ${sum(heads)} heads; most cards have at most three. Please check.` : "";
    announce(`${at}: ${inWords(heads)}. ${warning}`);
    goTo(next(at));
    fault.textContent = warning;
  };

  input.addEventListener("input", () => { fault.textContent = ""; draw(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); enter(); }
    else if (event.key === "ArrowUp" || (event.key === "Backspace" && !input.value)) { event.preventDefault(); goTo(next(at, -1)); }
    else if (event.key === "ArrowDown") { event.preventDefault(); goTo(next(at)); }
  });

  const save = el("button", { class: "main", id: "save", type: "button", onclick: async () => {
    try {
      const { csv, summary } = await call("api/deck", { body: { cards: draft.cards } });
      keep();
      download(`${draft.name.replace(/[^\w-]+/g, "-")}.csv`, csv, "text/csv");
      result.replaceChildren(`Saved: ${plural(summary.heads, "head")} on ${info.cards} cards. `, el("a", { href: "#/" }, "Play with it"),
        " – choose it as the deck of a new table.");
    } catch (error) { fault.textContent = error.message; }
  } }, "Check and save as CSV");
  const result = el("p", { id: "result", role: "status" });
  const file = el("input", { type: "file", id: "csv", accept: ".csv,text/csv", onchange: async () => {
    try {
      draft.cards = (await call("api/deck", { body: { csv: await textOf(file.files[0]) } })).cards;
      draft.name = name.value = file.files[0].name.replace(/\.csv$/i, "").replace(/[^\w .()-]/g, "-").slice(0, 40) || "my deck";
      keep();
      result.textContent = "The deck is loaded.";
      goTo(1);
    } catch (error) { fault.textContent = error.message; }
    file.value = "";
  } });

  root.replaceChildren(el("h1", {}, "Your own deck"),
    el("p", { id: "how" }, "The colors of the cards are not published, so the shipped decks are guesses. If you own the game, enter your cards: type the heads of each card as letters and press Enter. The letters are ",
      info.colors.map((color, index) => `${info.letters[index]} ${color}`).join(", "), ", one for each head, in any order. Two blue heads and a yellow one: ",
      el("kbd", {}, "bby"), " Enter. Arrow keys go to another card; the two Barons are already entered."),
    el("section", { class: "panel deckentry" }, picture, el("div", {}, title,
      el("div", { class: "bar" }, input, el("button", { type: "button", id: "enter", onclick: enter }, "Next")),
      el("div", { class: "heads" }, info.colors.map((name, color) => el("button", { type: "button", "aria-label": `Add a ${name} head`,
        onclick: () => { input.value += info.letters[color]; fault.textContent = ""; draw(); input.focus(); } }, dot(color))),
      el("button", { type: "button", onclick: () => { input.value = ""; draw(); input.focus(); } }, "Clear")),
      fault, progress)),
    el("section", { class: "panel" }, el("div", { class: "bar" }, el("label", { class: "bar" }, "Name", name), save,
      el("label", { class: "bar" }, "or open a CSV", file),
      el("button", { type: "button", id: "clear", onclick: () => {
        if (!confirm("Clear all cards?")) return;
        draft.cards = blankDeck();
        keep();
        goTo(1);
      } }, "Start over")), result, figures),
    grid);
  goTo(at);
}
