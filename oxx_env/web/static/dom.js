// Small helpers: elements, cards, words, and what this browser stores.

/** What the server says of levels, decks, rule sets, colors and limits: filled before a page is drawn. */
export const info = {};

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value).replace(/[\u2068\u2069]/g, ""));
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)
    .flatMap((child) => (typeof child === "string" ? textNodes(child) : child)));
  return node;
}

/** A name in a text, with its own writing direction. */
export const isolate = (name) => `\u2068${name}\u2069`;

/** A text as nodes; each name in it (isolated here or by the server) becomes a <bdi>. */
const textNodes = (text) => text.split(/\u2068([^\u2069]*)\u2069/).map((part, index) => {
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

export const inWords = (heads) =>
  heads.map((count, color) => (count ? `${count} ${info.colors[color]}` : "")).filter(Boolean).join(", ");

/** A letter in its color. */
export const dot = (color) => el("i", { class: `dot ${info.letters[color]}` }, info.letters[color]);

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

export const plural = (count, noun) => `${count} ${noun}${Math.abs(count) === 1 ? "" : "s"}`;

export const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** A card as a picture; its text gives number and heads. */
export function card(number, heads, attributes = {}) {
  return el("img", {
    class: "card", src: `card/${number}-${heads.join("")}.svg`, alt: `${number}, ${inWords(heads)}`,
    "data-card": number, draggable: "false", ...attributes,
  });
}

const colorSums = (row, cards) => info.colors.map((_, color) => sum(row.map((number) => cards[number - 1][color])));

/** The heads of a row by color, with letters. */
export function sums(row, cards) {
  const totals = colorSums(row, cards);
  return el("span", { class: "sums", "aria-hidden": "true" },
    el("span", { class: "total" }, plural(sum(totals), "head")),
    totals.map((count, color) => count ? el("span", { class: count >= 5 ? "many" : "" }, dot(color), count) : null));
}

export function rowInWords(index, row, cards) {
  const list = row.map((number) => `${number} with ${inWords(cards[number - 1])}`).join("; ");
  return `Row ${index}: ${list}. ${plural(row.length, "card")}, ${plural(sum(colorSums(row, cards)), "head")}.`;
}

/** Have a screen reader read a text. */
export function announce(text) {
  document.getElementById("announcer").replaceChildren(...textNodes(text));
}

/** Run a button's action; the button is off until it is done. */
export async function once(button, action) {
  if (button.disabled) return;
  button.disabled = true;
  try { await action(); } finally { button.disabled = false; }
}

export const store = {
  get(key, fallback) {
    try {
      const text = localStorage.getItem(`oxx.${key}`);
      return text === null ? fallback : JSON.parse(text);
    } catch { return fallback; }
  },
  set(key, value) {
    try { localStorage.setItem(`oxx.${key}`, JSON.stringify(value)); } catch { /* full, or not allowed */ }
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
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
