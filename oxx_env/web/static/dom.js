// Small helpers: elements, cards, words, and what is kept in this browser.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value).replace(/[\u2068\u2069]/g, ""));
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)
    .flatMap((child) => (typeof child === "string" ? prose(child) : child)));
  return node;
}

/** A name in a text: whatever is written in it, it turns nothing around it. */
export const isolate = (name) => `\u2068${name}\u2069`;

/** A text as nodes, each name in it (isolated here or by the server) a <bdi>. */
const prose = (text) => text.split(/\u2068([^\u2069]*)\u2069/).map((part, index) => {
  if (index % 2 === 0) return part;
  const node = document.createElement("bdi");
  node.textContent = part;
  return node;
});

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.flat());
  return node;
}

export const LETTERS = "BYGRKW";
export const COLORS = ["blue", "yellow", "green", "red", "black", "white"];

export const inWords = (heads) =>
  heads.map((count, color) => (count ? `${count} ${COLORS[color]}` : "")).filter(Boolean).join(", ");

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

export const plural = (count, what) => `${count} ${what}${Math.abs(count) === 1 ? "" : "s"}`;

/** A card as a picture; its text says number and heads. */
export function card(number, heads, attributes = {}) {
  return el("img", {
    class: "card", src: `card/${number}-${heads.join("")}.svg`, alt: `${number}, ${inWords(heads)}`,
    "data-card": number, draggable: "false", ...attributes,
  });
}

/** The heads of a row by color, with letters. */
export function sums(row, cards) {
  const totals = COLORS.map((_, color) => sum(row.map((number) => cards[number - 1][color])));
  return el("span", { class: "sums", "aria-hidden": "true" },
    el("span", { class: "total" }, plural(sum(totals), "head")),
    totals.map((count, color) => count ? el("span", { class: count >= 5 ? "many" : "" },
      el("i", { class: `dot ${LETTERS[color]}` }, LETTERS[color]), count) : null));
}

export function rowInWords(index, row, cards) {
  const told = row.map((number) => `${number} with ${inWords(cards[number - 1])}`).join("; ");
  const total = sum(row.map((number) => sum(cards[number - 1])));
  return `Row ${index}: ${told}. ${plural(row.length, "card")}, ${plural(total, "head")}.`;
}

/** Read out to people who hear the page. */
export function say(text) {
  const said = document.getElementById("said");
  said.replaceChildren(...prose(text));
}

/** Do something that a button is for; until it is done the button is off. */
export async function once(button, work) {
  if (button.disabled) return;
  button.disabled = true;
  try { await work(); } finally { button.disabled = false; }
}

export const kept = {
  get(key, fallback) {
    try {
      const text = localStorage.getItem(`oxx.${key}`);
      return text === null ? fallback : JSON.parse(text);
    } catch { return fallback; }
  },
  set(key, value) {
    try { localStorage.setItem(`oxx.${key}`, JSON.stringify(value)); } catch { /* a full or closed store */ }
  },
};

export function download(name, text, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export const motion = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
