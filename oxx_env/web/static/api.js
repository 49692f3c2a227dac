// Requests to the server. A seat's token goes in a header and stands in no address that is sent.

export class Refusal extends Error {
  /** `retry`: in how many seconds to try again; 0: nobody knows. */
  constructor(status, message, retry) { super(message); Object.assign(this, { status, retry }); }

  /** May the same request be met later? */
  get passes() { return this.status >= 500 || this.status === 429 || this.status === 408; }
}

export async function call(path, { token, body, text, signal, raw } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, {
    method: body !== undefined || text !== undefined ? "POST" : "GET",
    headers, signal, body: body !== undefined ? JSON.stringify(body) : text, cache: "no-store",
  });
  if (raw && answer.ok) return answer.text();
  let told = {};
  try { told = await answer.json(); } catch { /* no JSON: the status says enough */ }
  if (!answer.ok) throw new Refusal(answer.status, told.error || `the server said ${answer.status}`,
    Number(answer.headers.get("Retry-After")) || 0);
  return told;
}

let known = null;
export const info = () => (known ??= call("api/info").catch((error) => { known = null; throw error; }));
