// Elements, links to objects, states and times as the views show them. Texts are only ever set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** The words for the states of objects; each state has a shape too, so that colour is never the only sign. */
export const STATES = { bad: "Failing", waits: "Waiting", ok: "Healthy", done: "Done", gone: "Deleting" };

/** An element with attributes (`class`, `on` for listeners, anything else as it is) and children. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Set the text of an element, and touch the document only if it is another one. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A symbol of index.html. */
export function icon(name, more = "") {
  return s("svg", { class: `icon ${more}`, "aria-hidden": "true" }, s("use", { href: `#i-${name}` }));
}

/** The mark of a state: its shape, and its word for screen readers or for everyone. */
export function mark(state, { word = false } = {}) {
  const known = state in STATES ? state : "waits";
  return h("span", { class: `mark state-${known}` }, icon(known), h("span", { class: word ? "" : "hidden" }, STATES[known]));
}

/** The address of an object's page. */
export function address({ kind, namespace, name }) {
  const parts = namespace ? [kind, namespace, name] : [kind, name];
  return `#/object/${parts.map(encodeURIComponent).join("/")}`;
}

/** "Deployment default/web", as people say it. */
export function named({ kind, namespace, name }) {
  return `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
}

/** A name that may break where names have their joints, so that long ones fit narrow screens. */
export function breakable(name) {
  return name.split(/(?<=[-./])/).flatMap((part, at) => (at ? [h("wbr"), part] : [part]));
}

const numbers = new Intl.NumberFormat("en"); // making one is slow

/** A count with its separators. */
export const count = (number) => (number < 1000 ? String(number) : numbers.format(number));

/** "3 pods", "1 pod". */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Seconds as two units at most: "3 h 12 min". */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 0) seconds = 0;
  if (seconds < 1) return seconds === 0 ? "0 s" : `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${+seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([size]) => seconds >= size);
  const [size, unit] = units[first];
  const whole = Math.floor(seconds / size);
  const rest = units[first + 1] ? Math.floor((seconds - whole * size) / units[first + 1][0]) : 0;
  return `${whole} ${unit}${rest && whole < 10 ? ` ${rest} ${units[first + 1][1]}` : ""}`;
}

/** A latency, in the unit that fits it. */
export function latency(seconds) {
  if (!seconds) return "0";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${+(seconds * 1000).toPrecision(2)} ms`;
  return duration(seconds);
}

/** The time from one instant to another, in words. */
export function since(then, now) {
  return then ? duration((now - Date.parse(then)) / 1000) : "";
}

/** A point in cluster time: "14:03:21", with its date if that is not today's in the cluster. */
export function clockTime(at, now) {
  const iso = new Date(at).toISOString();
  const time = iso.slice(11, 19);
  return now !== undefined && iso.slice(0, 10) === new Date(now).toISOString().slice(0, 10) ? time : `${iso.slice(0, 10)} ${time}`;
}

/** A <time> that shows a point in cluster time. */
export function timeElement(at, now) {
  if (!at || Number.isNaN(Date.parse(at))) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: at, title: at }, clockTime(at, now));
}

/** Run a function at most once in so many milliseconds, always a last time. */
export function throttled(milliseconds, run) {
  let timer = 0;
  let last = -Infinity;
  const now = () => {
    timer = 0;
    last = performance.now();
    run();
  };
  const request = () => {
    if (!timer) timer = setTimeout(now, Math.max(0, last + milliseconds - performance.now()));
  };
  request.cancel = () => {
    clearTimeout(timer);
    timer = 0;
  };
  return request;
}

const SLICE = 5; // milliseconds

/** Handle the members of a set and take them out of it, in time slices: those that a slice has no room for are handled in the next frame. */
export function sliced(waiting, handle, done) {
  let frame = 0;
  const run = () => {
    frame = 0;
    const end = performance.now() + SLICE;
    for (const each of waiting) {
      waiting.delete(each);
      handle(each);
      if (waiting.size && performance.now() > end) {
        frame = requestAnimationFrame(run);
        return;
      }
    }
    done();
  };
  const start = () => {
    if (!frame) run();
  };
  start.cancel = () => {
    cancelAnimationFrame(frame);
    frame = 0;
  };
  return start;
}

/** Replace what an element contains, and keep the focus and the scrolled places of what is there again. */
export function refill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const scrolled = new Map(
    [...element.querySelectorAll("[data-scroll]")].map((each) => [each.dataset.scroll, [each.scrollLeft, each.scrollTop]]),
  );
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const each of element.querySelectorAll("[data-scroll]")) {
    const [left, top] = scrolled.get(each.dataset.scroll) ?? [0, 0];
    each.scrollLeft = left;
    each.scrollTop = top;
  }
  if (focused) element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

let announcement = 0;
const pending = [];

/** Say a change to screen readers; what comes within a second is said together. */
export function announce(text) {
  pending.push(text);
  if (announcement) return;
  announcement = setTimeout(() => {
    announcement = 0;
    const said = pending.splice(0);
    const more = said.length > 3 ? [`and ${said.length - 3} more changes`] : [];
    document.getElementById("announcer").textContent = [...said.slice(0, 3), ...more].join(". ");
  }, 400);
}
