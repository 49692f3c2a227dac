// The pages by the part of the address behind the #, which is sent to no server.
import { connected, info } from "./api.js";
import { el, kept } from "./dom.js";
import { home, join } from "./home.js";
import { play } from "./play.js";
import { replay } from "./replay.js";
import { deckPage } from "./deck.js";

const main = document.getElementById("main");
let leave = () => {};

async function rulesPage(root) {
  const { rules } = await info();
  root.replaceChildren(el("h1", {}, "The rules"), ...rules.map((one) => el("section", { class: "panel" },
    el("h2", {}, `${one.name} – ${one.direction}`),
    one.text.split("\n").map((line) => el("p", {}, line)))),
  el("p", { class: "note" }, "Cards show their heads with letters: B blue, Y yellow, G green, R red, K black, W white."));
}

const PAGES = {
  "": ["play", home], join: ["play", join], table: ["play", play], watch: ["play", play], replay: ["replay", replay],
  deck: ["deck", deckPage], rules: ["rules", rulesPage],
};

/** A part of the address; as it stands where it is no proper one. */
function plain(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

async function show() {
  leave();
  leave = () => {};
  const [name, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(plain);
  const [page, draw] = PAGES[name] ?? PAGES[""];
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const left = new AbortController();
  leave = () => left.abort();
  main.replaceChildren(el("p", {}, "Loading …"));
  try {
    await draw(main, parts, left.signal);
  } catch (error) {
    if (left.signal.aborted) return;
    main.replaceChildren(el("h1", {}, "This did not work"), el("p", { class: "bad", role: "alert" }, error.message),
      el("p", {}, el("a", { href: "#/" }, "To the start"), " · ",
        el("button", { type: "button", onclick: show }, "Try again")));
    if (error.lost) connected(8000, left.signal).then(() => left.signal.aborted || show());
  }
}

const theme = kept.get("theme", "");
if (theme) document.documentElement.dataset.theme = theme;
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  kept.set("theme", document.documentElement.dataset.theme);
});
document.querySelector(".skip").addEventListener("click", (click) => {
  click.preventDefault();
  main.focus();
});
addEventListener("hashchange", show);
show();
