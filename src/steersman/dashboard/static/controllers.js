// The controllers: queues, rounds, latencies, errors, hot keys and write fights, read again every two seconds.

import { get, Refused } from "./api.js";
import { address, count, h, latency, named, plural, refill, s, setText, since } from "./dom.js";

const AGAIN = 2000;
const POINTS = 60;
const COLUMNS = [
  ["Controller", "Its name, and the kind of its keys"],
  ["Queue", "Keys that are ready, in work, and waiting for their time"],
  ["Rounds/s", "In the last minute, and since this page is open"],
  ["Took", "A round: median and 99th percentile"],
  ["Waited", "A key in the queue: median and 99th percentile"],
  ["Writes", "Accepted in the last minute, by verb"],
  ["Errors", "In the last minute: failed rounds, retries, refused writes"],
];

export function controllers({ store, refused }) {
  const history = new Map(); // rounds a second of each controller, the latest last
  const only = h("input", { type: "checkbox", id: "busy", on: { change: render } });
  const fights = h("div");
  const hot = h("div");
  const body = h("tbody");
  const table = h("table", { class: "controllers" }, h("thead", {}, h("tr", {}, COLUMNS.map(([text, title]) => h("th", { scope: "col", title }, text)))), body);
  const message = h("p", { class: "muted", role: "status" }, "Reading …");
  const element = h(
    "div",
    {},
    h("h1", { tabindex: "-1" }, "Controllers"),
    h("div", { class: "pair" },
      h("section", { class: "panel", "aria-labelledby": "h-fights" }, h("h2", { id: "h-fights" }, "Write fights"), fights),
      h("section", { class: "panel", "aria-labelledby": "h-hot" }, h("h2", { id: "h-hot" }, "Hot keys"), hot)),
    h("section", { class: "panel", "aria-labelledby": "h-all" },
      h("div", { class: "panel-head" }, h("h2", { id: "h-all" }, "All controllers"), h("label", { class: "check", for: "busy" }, only, "busy in the last minute only"), message),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of controllers" }, table)),
  );

  const rows = new Map();
  let last = { controllers: [], fights: [] };
  let stopped = false;
  let timer = 0;
  const stop = new AbortController();

  async function read() {
    try {
      last = await get("controllers", { signal: stop.signal });
      for (const each of last.controllers) {
        const points = history.get(each.name) ?? [];
        points.push(each.lastMinute.perSecond);
        history.set(each.name, points.slice(-POINTS));
      }
      if (!stopped) render();
    } catch (error) {
      if (stopped) return;
      if (error instanceof Refused && error.code === 401) refused(error);
      setText(message, error instanceof Refused ? error.message : "The plane does not answer; trying again.");
    } finally {
      if (!stopped) timer = setTimeout(read, AGAIN);
    }
  }

  function render() {
    const shown = last.controllers.filter((each) => !only.checked || each.lastMinute.perSecond > 0 || each.queue.ready + each.queue.working > 0);
    const kept = new Set();
    let place = body.firstElementChild;
    for (const each of shown) {
      kept.add(each.name);
      let row = rows.get(each.name);
      if (!row) rows.set(each.name, (row = newRow(each)));
      row.show(each, history.get(each.name) ?? []);
      if (row.element === place) place = place.nextElementSibling;
      else body.insertBefore(row.element, place);
    }
    for (const [name, row] of rows) if (!kept.has(name)) { row.element.remove(); rows.delete(name); }
    table.hidden = !shown.length;
    setText(message, last.controllers.length ? `${plural(shown.length, "controller")}${only.checked ? ` of ${last.controllers.length}` : ""}` : "No controllers run here: this replica does not lead, or they are turned off.");
    refill(fights, fightList(last.fights ?? [], store.now()));
    refill(hot, hotKeys(last.controllers, store));
  }

  read();
  return {
    element,
    title: "Controllers",
    close() {
      stopped = true;
      stop.abort();
      clearTimeout(timer);
    },
  };
}

function newRow(first) {
  const cells = COLUMNS.slice(1).map(([label]) => h("td", { "data-label": label }));
  const [queue, rounds, took, waited, writes, errors] = cells;
  rounds.className = "c-rounds";
  const rate = h("span");
  const line = s("polyline", { fill: "none" });
  rounds.append(rate, s("svg", { class: "spark", viewBox: "0 0 60 18", preserveAspectRatio: "none", "aria-hidden": "true" }, line));
  const element = h("tr", {}, h("th", { scope: "row" }, h("span", { class: "controller" }, first.name), h("span", { class: "muted" }, first.kind)), cells);
  return {
    element,
    show(each, points) {
      const minute = each.lastMinute;
      const { ready, working, waiting, oldestSeconds } = each.queue;
      setText(queue, ready + working + waiting ? [[ready, "ready"], [working, "in work"], [waiting, "waiting"]].filter(([number]) => number).map(([number, word]) => `${count(number)} ${word}`).join(", ") + (ready && oldestSeconds >= 1 ? `; oldest ${latency(oldestSeconds)}` : "") : "empty");
      setText(rate, minute.perSecond ? String(+minute.perSecond.toPrecision(3)) : "0");
      const top = Math.max(...points, 0.1);
      line.setAttribute("points", points.map((value, at) => `${((at * 60) / Math.max(1, points.length - 1)).toFixed(1)},${(17 - (value / top) * 15).toFixed(1)}`).join(" "));
      const active = minute.perSecond > 0;
      setText(took, active ? `${latency(minute.took.p50)} / ${latency(minute.took.p99)}` : "–");
      setText(waited, active ? `${latency(minute.waited.p50)} / ${latency(minute.waited.p99)}` : "–");
      setText(writes, Object.entries(minute.writes).map(([verb, number]) => `${count(number)} ${verb}`).join(", ") || "–");
      const wrong = [[minute.failures, "failed"], [minute.retries, "retried"], [minute.refused, "refused"], [each.crashes, "crashed"]].filter(([number]) => number);
      setText(errors, wrong.map(([number, word]) => `${count(number)} ${word}`).join(", ") || "none");
      errors.className = wrong.length ? "wrong" : "muted";
      queue.className = ready + working + waiting ? "" : "muted";
      element.className = active ? "" : "idle";
    },
  };
}

function fightList(found, now) {
  if (!found.length) return h("p", { class: "muted" }, "No two actors undo each other's writes.");
  return h("ul", { class: "plain" }, found.slice(0, 10).map((each) => h("li", {}, h("a", { href: address(each), "data-key": `fight ${named(each)}` }, named(each)), `: ${each.actors.join(" and ")} changed it in turns ${each.turns} times, the last ${since(each.last, now)} ago`)));
}

function hotKeys(controllers, store) {
  const keys = controllers.flatMap((each) => each.lastMinute.hottest.map((key) => ({ ...key, kind: each.kind, controller: each.name })));
  const top = keys.sort((one, other) => other.rounds - one.rounds).slice(0, 8);
  if (!top.length) return h("p", { class: "muted" }, "No rounds in the last minute.");
  const most = top[0].rounds;
  return h(
    "ol",
    { class: "plain hot" },
    top.map((each) => {
      const fill = h("span", { class: "meter-fill" });
      fill.style.setProperty("width", `${Math.max(2, (each.rounds / most) * 100)}%`);
      return h("li", {}, h("span", { class: "meter", "aria-hidden": "true" }, fill), h("span", {}, keyName(each, store), h("span", { class: "muted" }, ` ${plural(each.rounds, "round")} of ${each.controller}`)));
    }),
  );
}

/** The name of a key, with a link where the dashboard has a page of its object. */
function keyName(key, store) {
  if (!key.kind || !key.name) return key.name || "its one key";
  const known = store.find(key.kind, key.namespace, key.name);
  return known ? h("a", { href: address(key), "data-key": `hot ${key.controller} ${named(key)}` }, named(key)) : named(key);
}
