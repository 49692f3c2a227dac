// The pages, by the part of the address behind the #, which browsers do not send.
import { call, reconnect } from "./api.js";
import { el, info, store } from "./dom.js";
import { home, join } from "./home.js";
import { play } from "./play.js";
import { replay } from "./replay.js";
import { deckPage } from "./deck.js";

const main = document.getElementById("main");
let leave = () => {};

function rulesPage(root) {
  root.replaceChildren(el("h1", {}, "The rules"), ...info.rules.map((one) => el("section", { class: "panel" },
    el("h2", {}, `${one.name} – ${one.direction}`),
    one.text.split("\n").map((line) => el("p", {}, line)))),
  el("p", { class: "note" }, "Cards show their heads with letters: ",
    info.colors.map((color, index) => `${info.letters[index]} ${color}`).join(", "), "."));
}

const PAGES = {
  "": ["play", home], join: ["play", join], table: ["play", play], watch: ["play", play], replay: ["replay", replay],
  deck: ["deck", deckPage], rules: ["rules", rulesPage],
};

/** A decoded part of the address, or the part as it is if it cannot be decoded. */
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

async function show() {
  leave();
  const [name, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  const [page, draw] = PAGES[name] ?? PAGES[""];
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const left = new AbortController();
  leave = () => left.abort();
  main.replaceChildren(el("p", {}, "Loading …"));
  try {
    if (!info.rules) Object.assign(info, await call("api/info"));
    if (!left.signal.aborted) await draw(main, parts, left.signal);
  } catch (error) {
    if (left.signal.aborted) return;
    main.replaceChildren(el("h1", {}, "This did not work"), el("p", { class: "bad", role: "alert" }, error.message),
      el("p", {}, el("a", { href: "#/" }, "To the start"), " · ",
        el("button", { type: "button", onclick: show }, "Try again")));
    if (error.lost) reconnect(8000, left.signal).then(() => left.signal.aborted || show());
  }
}

const root = document.documentElement;
root.dataset.theme = store.get("theme", "");
document.getElementById("theme").addEventListener("click", () => {
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  store.set("theme", root.dataset.theme);
});
document.querySelector(".skip").addEventListener("click", (click) => {
  click.preventDefault();
  main.focus();
});
addEventListener("hashchange", show);
show();
