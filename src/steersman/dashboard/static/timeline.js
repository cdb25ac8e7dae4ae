// The timeline of an object: causes, decisions and writes by rounds, with events and conditions, the latest first.

import { clockTime, h, plural, since } from "./dom.js";

const KINDS = { cause: "Causes", decision: "Decisions", write: "Writes", event: "Events", condition: "Conditions" };
const SHOWN = 60;

/** The part of the page; `state` outlives a redraw: the kinds that are left out, and how many entries are shown. */
export function timeline(entries, now, state, redraw) {
  state.without ??= new Set();
  state.limit ??= SHOWN;
  const present = Object.keys(KINDS).filter((kind) => entries.some((each) => each.kind === kind));
  const wanted = entries.filter((each) => !state.without.has(each.kind));
  const rounds = new Set(wanted.filter(isRound).map((each) => each.round));
  const groups = grouped(wanted);
  const toggles = h(
    "div",
    { class: "toggles", role: "group", "aria-label": "Kinds of entries" },
    present.map((kind) => h("button", { type: "button", class: "toggle", "aria-pressed": String(!state.without.has(kind)), "data-key": `toggle ${kind}`, on: { click: () => flip(kind) } }, dot(kind), KINDS[kind])),
  );

  function flip(kind) {
    if (!state.without.delete(kind)) state.without.add(kind);
    redraw();
  }

  if (!entries.length) return [h("p", { class: "muted" }, "The plane has recorded nothing about this object. It keeps the last rounds only.")];
  let left = state.limit;
  const visible = groups.filter((group) => (left -= group.length) > -group.length);
  const hidden = groups.slice(visible.length).reduce((sum, group) => sum + group.length, 0);
  return [
    toggles,
    h("ol", { class: "timeline" }, visible.map((group) => roundItem(group, now, rounds))),
    hidden ? h("button", { type: "button", "data-key": "older", on: { click: () => { state.limit += SHOWN * 2; redraw(); } } }, `Show older (${hidden} left)`) : null,
  ];
}

const dot = (kind) => h("span", { class: `dot dot-${kind}`, "aria-hidden": "true" });

const isRound = (entry) => entry.round !== null && entry.round !== undefined;

/** Entries of one round stand together; the round that ended last comes first. */
function grouped(entries) {
  const groups = new Map();
  entries.forEach((each, at) => {
    const key = isRound(each) ? each.round : `entry ${at}`;
    const group = groups.get(key) ?? [];
    group.push(each);
    // In the order of their last entries.
    groups.delete(key);
    groups.set(key, group);
  });
  // Within a round: the cause first, then what was written, then how it ended.
  const order = ["cause", "write", "decision"];
  return [...groups.values()].reverse().map((group) => group.sort((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind)));
}

function roundItem(group, now, rounds) {
  const [first] = group;
  const numbered = isRound(first);
  const caused = [...new Set(group.flatMap((each) => each.caused ?? []))].filter((round) => round !== first.round);
  return h(
    "li",
    { class: "round", id: numbered ? `round-${first.round}` : null, tabindex: numbered ? "-1" : null },
    h(
      "div",
      { class: "round-head" },
      h("time", { datetime: first.at, title: `${since(first.at, now)} ago` }, clockTime(first.at, now)),
      h("b", {}, first.who || "the cluster"),
      numbered ? h("span", { class: "muted" }, `round ${first.round}`) : null,
    ),
    h("ul", {}, group.map((each) => h("li", { class: "entry" }, dot(each.kind), h("span", { class: "entry-kind" }, each.kind), h("span", { class: "entry-text" }, each.text, subject(each, group))))),
    caused.length ? h("p", { class: "caused muted" }, `led to ${plural(caused.length, "round")}: `, caused.slice(0, 12).map((round, at) => [at ? ", " : "", rounds.has(round) ? h("button", { type: "button", class: "link", "data-key": `caused ${first.round} ${round}`, on: { click: () => show(round) } }, String(round)) : String(round)])) : null,
  );
}

/** The object of an entry, where it is another than the one before it was about. */
function subject(entry, group) {
  if (!entry.subject || entry.text.includes(entry.subject.split("/").at(-1))) return null;
  return group.find((each) => each.subject === entry.subject) === entry ? h("span", { class: "muted" }, ` ${entry.subject}`) : null;
}

function show(round) {
  const target = document.getElementById(`round-${round}`);
  target?.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  target?.focus({ preventScroll: true });
}
