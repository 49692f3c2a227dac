// Requests to the server. A seat's token goes in a header, so that no address that is sent holds it.
import { store } from "./dom.js";

export class RequestError extends Error {
  /** `status` 0: no answer. `retry`: seconds after which to try again; 0: unknown. `data`: the answer's JSON. */
  constructor(status, message, retry = 0, data = {}) { super(message); Object.assign(this, { status, retry, data }); }

  /** Did the connection to the server fail? */
  get lost() { return [0, 502, 504].includes(this.status); }

  /** Can the same request succeed later? */
  get temporary() { return this.lost || this.status >= 500 || this.status === 429 || this.status === 408; }
}

const running = new Set();
// Requests sent over a network that has changed get no answer any more.
addEventListener("online", () => { for (const one of running) one.abort(); });

/** `timeout`: milliseconds to wait for an answer. */
export async function call(path, { token, body, text, signal, raw, key, timeout } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  const aborter = new AbortController();
  const abort = () => aborter.abort();
  const timer = timeout && setTimeout(abort, timeout);
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  running.add(aborter);
  try {
    const answer = await fetch(path, {
      method: body !== undefined || text !== undefined ? "POST" : "GET",
      headers, signal: aborter.signal, body: body !== undefined ? JSON.stringify(body) : text, cache: "no-store",
    });
    const content = await answer.text();
    if (raw && answer.ok) return content;
    let data = {};
    try { data = JSON.parse(content); } catch { /* no JSON: the status is enough */ }
    if (!answer.ok) throw new RequestError(answer.status, data.error || `the server answered with status ${answer.status}`,
      Number(answer.headers.get("Retry-After")) || 0, data);
    return data;
  } catch (error) {
    if (error instanceof RequestError || signal?.aborted) throw error;
    throw new RequestError(0, "The connection to the server is lost.");
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    running.delete(aborter);
  }
}

/** Wait until the network is back or the page is visible again, at most `ms` milliseconds. */
export const reconnect = (ms, signal) => new Promise((resolve) => {
  const listeners = new AbortController();
  const end = () => { clearTimeout(timer); listeners.abort(); resolve(); };
  const timer = setTimeout(end, ms);
  addEventListener("online", end, { signal: listeners.signal });
  document.addEventListener("visibilitychange", () => document.hidden || end(), { signal: listeners.signal });
  signal?.addEventListener("abort", end, { signal: listeners.signal });
});

const randomText = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(18))))
  .replaceAll("+", "-").replaceAll("/", "_");

/** A request that changes something: sent until there is an answer, and counted once by the server. `lost()` is
    called at each failure of the connection. */
export async function change(path, { lost, ...options }) {
  const key = randomText();
  for (let wait = 500; ; wait = Math.min(8000, 2 * wait)) {
    try {
      return await call(path, { timeout: 20000, ...options, key });
    } catch (error) {
      if (options.signal?.aborted || !error.lost) throw error;
      lost?.();
      await reconnect(wait, options.signal);
    }
  }
}

let me = null;
/** The secret by which servers recognise this browser, so that it has one seat at a table. */
export function person() {
  me ??= store.get("person", null) ?? randomText();
  store.set("person", me);
  return me;
}
