// Own deck: type in the cards of one's box, check them, save them as CSV.
import { call, info } from "./api.js";
import { LETTERS, card, download, el, inWords, kept, plural, say, sum } from "./dom.js";

const BLANK = () => Array(6).fill(0);
const lettersOf = (heads) => heads.map((count, color) => LETTERS[color].repeat(count)).join("");

// The text of a file as spreadsheets write it: UTF-8, UTF-16 with a mark, or Windows-1252.
async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = bytes[0] << 8 | bytes[1];
  const wide = { 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[mark];
  for (const encoding of wide ? [wide] : ["utf-8", "windows-1252"]) {
    try {
      return new TextDecoder(encoding, { fatal: true }).decode(bytes);
    } catch { /* another encoding */ }
  }
  return file.text();
}

export async function deckPage(root) {
  const known = await info();
  const draft = kept.get("deck", null) ?? { name: "my deck", cards: Array.from({ length: 110 }, BLANK) };
  for (const baron of known.barons) draft.cards[baron - 1] = Array(6).fill(1);
  const isBaron = (number) => known.barons.includes(number);
  const next = (from, step = 1) => {
    let number = from;
    do number = ((number - 1 + step + 110) % 110) + 1; while (isBaron(number));
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

  const keep = () => kept.set("deck", draft);

  const read = (text) => {
    const heads = BLANK();
    for (const letter of text.toUpperCase().replace(/\s/g, "")) {
      const color = LETTERS.indexOf(letter);
      if (color < 0) return { error: `“${letter}” is no color; the letters are ${LETTERS.split("").join(", ")} (K is black).` };
      heads[color] += 1;
      if (heads[color] > known.max_heads) return { error: `At most ${known.max_heads} heads of one color.` };
    }
    return sum(heads) ? { heads } : { error: "A card shows at least one head." };
  };

  const draw = () => {
    title.textContent = isBaron(at) ? `Card ${at}, a Baron` : `Card ${at}`;
    const told = read(input.value);
    const heads = told.heads ?? draft.cards[at - 1];
    picture.replaceChildren(sum(heads) ? card(at, heads) : el("i", { class: "slot card" }));
    input.disabled = isBaron(at);
    const done = draft.cards.filter((one) => sum(one)).length;
    const empty = firstEmpty();
    progress.textContent = `${done} of 110 cards entered` + (empty ? `; the next one missing is ${empty}.` : ".");
    grid.replaceChildren(...draft.cards.map((one, index) => el("li", {}, el("button", {
      type: "button", class: `${sum(one) ? "" : "empty"}${index + 1 === at ? " here" : ""}`, disabled: isBaron(index + 1),
      "aria-label": `Card ${index + 1}: ${sum(one) ? inWords(one) : "missing"}`, onclick: () => goTo(index + 1) },
    el("b", {}, index + 1), sum(one) ? lettersOf(one) : "–"))));
    figures.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "Heads by color"),
      [...LETTERS].map((letter) => el("th", {}, el("i", { class: `dot ${letter}` }, letter))))),
    el("tbody", {}, el("tr", {}, el("td", {}, plural(sum(draft.cards.map(sum)), "head")),
      [...LETTERS].map((_, color) => el("td", { class: "figure" }, sum(draft.cards.map((one) => one[color]))))))));
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
    const told = read(input.value);
    if (told.error) {
      fault.textContent = told.error;
      return;
    }
    draft.cards[at - 1] = told.heads;
    keep();
    const many = sum(told.heads) > 3 ? ` ${at} has ${sum(told.heads)} heads; most cards have at most three: look again.` : "";
    say(`${at}: ${inWords(told.heads)}.${many}`);
    const was = at;
    goTo(next(at));
    fault.textContent = many ? `Card ${was}:${many}` : "";
  };

  input.addEventListener("input", () => { fault.textContent = ""; draw(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); enter(); }
    else if (event.key === "ArrowUp" || (event.key === "Backspace" && !input.value)) { event.preventDefault(); goTo(next(at, -1)); }
    else if (event.key === "ArrowDown") { event.preventDefault(); goTo(next(at)); }
  });

  const save = el("button", { class: "main", id: "save", type: "button", onclick: async () => {
    try {
      const told = await call("api/deck", { body: { cards: draft.cards } });
      keep();
      download(`${draft.name.replace(/[^\w-]+/g, "-")}.csv`, told.csv, "text/csv");
      result.replaceChildren(`Saved: ${plural(told.summary.heads, "head")} on 110 cards. `, el("a", { href: "#/" }, "Play with it"),
        " – it is among the decks of a new table.");
    } catch (error) { fault.textContent = error.message; }
  } }, "Check and save as CSV");
  const result = el("p", { id: "result", role: "status" });
  const file = el("input", { type: "file", id: "csv", accept: ".csv,text/csv", onchange: async () => {
    try {
      const told = await call("api/deck", { body: { csv: await textOf(file.files[0]) } });
      draft.cards = told.cards;
      draft.name = name.value = file.files[0].name.replace(/\.csv$/i, "").replace(/[^\w .()-]/g, "-").slice(0, 40) || "my deck";
      keep();
      result.textContent = "The deck is loaded.";
      goTo(1);
    } catch (error) { fault.textContent = error.message; }
    file.value = "";
  } });

  root.replaceChildren(el("h1", {}, "Your own deck"),
    el("p", { id: "how" }, "The list of colors is not public, so the shipped decks are guesses. Have your box? Go through the cards by number and type each one's heads as letters – B blue, Y yellow, G green, R red, K black, W white, one letter a head, in any order – then Enter. ",
      "Two blue heads and a yellow one: ", el("kbd", {}, "bby"), " Enter. Arrow keys go to another card; the two Barons are there already."),
    el("section", { class: "panel deckentry" }, picture, el("div", {}, title,
      el("div", { class: "bar" }, input, el("button", { type: "button", id: "enter", onclick: enter }, "Next")),
      el("div", { class: "heads" }, [...LETTERS].map((letter, color) => el("button", { type: "button", "aria-label": `Add a ${["blue", "yellow", "green", "red", "black", "white"][color]} head`,
        onclick: () => { input.value += letter; fault.textContent = ""; draw(); input.focus(); } }, el("i", { class: `dot ${letter}` }, letter))),
      el("button", { type: "button", onclick: () => { input.value = ""; draw(); input.focus(); } }, "Clear")),
      fault, progress)),
    el("section", { class: "panel" }, el("div", { class: "bar" }, el("label", { class: "bar" }, "Name", name), save,
      el("label", { class: "bar" }, "or open a CSV", file),
      el("button", { type: "button", id: "clear", onclick: () => {
        if (!confirm("Empty all cards?")) return;
        draft.cards = Array.from({ length: 110 }, (_, index) => (isBaron(index + 1) ? Array(6).fill(1) : BLANK()));
        keep();
        goTo(1);
      } }, "Start anew")), result, figures),
    grid);
  goTo(at);
}
