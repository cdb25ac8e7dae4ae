// Requests to the plane: each carries the user's token, which stays in this tab's session.

const KEY = "steersman-token";

/** A refusal of the plane: its HTTP code, and the message of its Status. */
export class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Take the token out of the address, so that it is neither shown nor shared; whether there was one. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  if (token === null) return false;
  keepToken(token);
  history.replaceState(null, "", `${location.pathname}${location.search}#/`);
  return true;
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token.trim());
}

async function request(path, options = {}) {
  const token = sessionStorage.getItem(KEY);
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(`api/${path}`, { ...options, headers, cache: "no-store" });
  if (response.ok) return response;
  const text = await response.text();
  let message = text.slice(0, 500);
  try {
    message = JSON.parse(text).message ?? message;
  } catch {
    // A proxy in between answers in its own words.
  }
  throw new Refused(response.status, message || `the plane answered ${response.status}`);
}

/** GET a document. */
export async function get(path, { parameters = {}, signal } = {}) {
  const query = new URLSearchParams(parameters).toString();
  return (await request(query ? `${path}?${query}` : path, { signal })).json();
}

/** POST a document. */
export async function post(path, document) {
  const body = JSON.stringify(document);
  return (await request(path, { method: "POST", body, headers: { "Content-Type": "application/json" } })).json();
}

/** Read newline-delimited JSON, chunk by chunk, until it ends. */
export async function* lines(path, signal) {
  const response = await request(path, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const complete = (rest + value).split("\n");
    rest = complete.pop();
    yield complete.filter(Boolean).map((line) => JSON.parse(line));
  }
}
