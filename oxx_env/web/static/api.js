// Requests to the server. A seat's token goes in a header and stands in no address that is sent.
import { kept } from "./dom.js";

export class Refusal extends Error {
  /** `status` 0: nobody answered. `retry`: in how many seconds to try again; 0: nobody knows. */
  constructor(status, message, retry = 0, told = {}) { super(message); Object.assign(this, { status, retry, told }); }

  /** Is it the way to the server that failed? */
  get lost() { return [0, 502, 504].includes(this.status); }

  /** May the same request be met later? */
  get passes() { return this.lost || this.status >= 500 || this.status === 429 || this.status === 408; }
}

const underWay = new Set();
// What was sent over a network that is gone is answered by nobody.
addEventListener("online", () => { for (const one of underWay) one.abort(); });

/** `patience`: milliseconds after which nobody is expected to answer. */
export async function call(path, { token, body, text, signal, raw, key, patience } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  const cut = new AbortController();
  const stop = () => cut.abort();
  const timer = patience && setTimeout(stop, patience);
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  underWay.add(cut);
  try {
    const answer = await fetch(path, {
      method: body !== undefined || text !== undefined ? "POST" : "GET",
      headers, signal: cut.signal, body: body !== undefined ? JSON.stringify(body) : text, cache: "no-store",
    });
    if (raw && answer.ok) return await answer.text();
    const said = await answer.text();
    let told = {};
    try { told = JSON.parse(said); } catch { /* no JSON: the status says enough */ }
    if (!answer.ok) throw new Refusal(answer.status, told.error || `the server said ${answer.status}`,
      Number(answer.headers.get("Retry-After")) || 0, told);
    return told;
  } catch (error) {
    if (error instanceof Refusal || signal?.aborted) throw error;
    throw new Refusal(0, "The connection to the server is lost.");
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    underWay.delete(cut);
  }
}

/** Until the network is back, or the person is, or for `ms` milliseconds. */
export const connected = (ms, signal) => new Promise((done) => {
  const over = new AbortController();
  const end = () => { clearTimeout(timer); over.abort(); done(); };
  const timer = setTimeout(end, ms);
  addEventListener("online", end, { signal: over.signal });
  document.addEventListener("visibilitychange", () => document.hidden || end(), { signal: over.signal });
  signal?.addEventListener("abort", end, { signal: over.signal });
});

const secret = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(18))))
  .replaceAll("+", "-").replaceAll("/", "_");

/** A request that changes something: sent until it is answered, and counted once. `lost()` is called
    each time that nobody answers. */
export async function change(path, { lost, ...options }) {
  const key = secret();
  for (let wait = 500; ; wait = Math.min(8000, 2 * wait)) {
    try {
      return await call(path, { patience: 20000, ...options, key });
    } catch (error) {
      if (options.signal?.aborted || !error.lost) throw error;
      lost?.();
      await connected(wait, options.signal);
    }
  }
}

let me = null;
/** By what servers know this browser: it has one seat at a table. */
export function person() {
  me ??= kept.get("person", null) ?? secret();
  kept.set("person", me);
  return me;
}

let known = null;
export const info = () => (known ??= call("api/info").catch((error) => { known = null; throw error; }));
