// The nodes, each with its pods as a grid of cells; a cell changes its class and nothing else when its pod changes.

import { post } from "./api.js";
import { address, announce, breakable, count, h, mark, named, plural, setText, STATES, throttled } from "./dom.js";

const CELLS = 400;
const UNSCHEDULED = "";

export function nodes({ store }) {
  const cards = new Map(); // by the name of the node; pods without a node have a card of their own
  const places = new Map(); // the node's name of each pod, by uid
  const list = h("div", { class: "nodes" });
  const shown = h("p", { class: "muted", role: "status" });
  const element = h(
    "div",
    {},
    h("h1", { tabindex: "-1" }, "Nodes"),
    h("div", { class: "legend" }, Object.keys(STATES).map((state) => h("span", {}, h("span", { class: `cell cell-${state}`, "aria-hidden": "true" }), STATES[state]))),
    shown,
    list,
  );
  list.addEventListener("pointerover", (event) => {
    const cell = event.target.closest?.(".cell");
    if (cell && !cell.title) cell.title = cell.getAttribute("aria-label");
  });
  list.addEventListener("keydown", walk);
  list.addEventListener("focusin", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    for (const each of cell.parentElement.querySelectorAll('[tabindex="0"]')) each.tabIndex = -1;
    cell.tabIndex = 0;
  });

  function card(name) {
    let found = cards.get(name);
    if (found) return found;
    found = nodeCard(name, store);
    cards.set(name, found);
    const after = [...cards.keys()].filter((each) => compare(each, name) > 0).sort(compare)[0];
    list.insertBefore(found.element, after === undefined ? null : cards.get(after).element);
    return found;
  }

  function take(id) {
    const object = store.objects.get(id);
    const before = places.get(id);
    const node = object?.kind === "Pod" ? object.node : undefined;
    if (before !== undefined && before !== node) {
      cards.get(before)?.remove(id);
      places.delete(id);
      touched.add(before);
    }
    if (node !== undefined) {
      places.set(id, node);
      card(node).put(object);
      touched.add(node);
    }
    if (object?.kind === "Node") {
      card(object.name).about(object);
      touched.add(object.name);
    } else if (!object) for (const [name, each] of cards) if (each.node === id) touched.add(name);
  }

  const touched = new Set(); // the cards that differ from what they show
  const finish = throttled(100, () => {
    for (const name of touched) {
      const each = cards.get(name);
      if (!each) continue;
      const gone = name !== UNSCHEDULED && !store.find("Node", "", name);
      if (each.pods.size === 0 && (name === UNSCHEDULED || gone)) {
        each.element.remove();
        cards.delete(name);
      } else each.finish(gone);
    }
    touched.clear();
    const named = [...cards.keys()].filter((name) => name !== UNSCHEDULED).length;
    setText(shown, !store.synced ? "Reading the cluster …" : named ? `${plural(named, "node")} with ${plural(places.size, "pod")}. Arrow keys move between pods, Enter opens one.` : "This cluster has no nodes.");
  });

  const all = [...store.objects.values()].filter((each) => each.kind === "Pod" || each.kind === "Node");
  for (const each of all.sort((one, other) => compare(named(one), named(other)))) take(each.id);
  finish();
  const unsubscribe = store.subscribe((changed) => {
    for (const id of changed) take(id);
    finish();
  });

  return {
    element,
    title: "Nodes",
    close() {
      unsubscribe();
      finish.cancel();
    },
  };
}

/** Names in the order that people count: node-2 before node-10. Pods without a node come first. */
function compare(one, other) {
  return one.localeCompare(other, "en", { numeric: true });
}

function nodeCard(name, store) {
  const pods = new Map(); // the cell of each pod, by uid; null for those beyond the limit
  const states = new Map();
  const grid = h("div", { class: "grid", role: "group", "aria-label": name ? `Pods of ${name}` : "Pods without a node" });
  const head = h("div", { class: "node-head" });
  const taints = h("p", { class: "taints muted" });
  const tally = h("p", { class: "tally muted" });
  const problem = h("p", { class: "problem", role: "alert" });
  const buttons = h("div", { class: "buttons" });
  const rest = h("a", { class: "rest", hidden: true, href: `#/?${new URLSearchParams({ kind: "Pod", node: name })}` });
  const element = h("section", { class: "panel node", "aria-label": name || "Pods without a node", "data-node": name }, head, taints, grid, rest, tally, buttons, problem);
  head.append(h("h2", {}, name ? breakable(name) : "Not on a node yet"));
  let shown = null;

  async function act(action, event) {
    event.target.disabled = true;
    try {
      await post("node", { name, action });
      setText(problem, "");
      announce(action === "fail" ? `${name} fails: its kubelet is silent from now on` : `${name} recovers`);
    } catch (error) {
      setText(problem, error.message);
    } finally {
      event.target.disabled = false;
    }
  }

  function button(action, text) {
    return h("button", { type: "button", "data-action": action, on: { click: (event) => act(action, event) } }, text, h("span", { class: "hidden" }, ` ${name}`));
  }

  return {
    element,
    pods,
    node: "", // the uid of the node
    put(pod) {
      let cell = pods.get(pod.id) ?? null;
      if (!cell && grid.childElementCount < CELLS) {
        cell = h("a", { href: address(pod), tabindex: "-1" });
        grid.append(cell);
      }
      pods.set(pod.id, cell);
      states.set(pod.id, pod.state);
      if (!cell) return;
      const look = `cell cell-${pod.state in STATES ? pod.state : "waits"}`;
      if (cell.className !== look) cell.className = look;
      cell.setAttribute("aria-label", `${pod.namespace}/${pod.name}: ${pod.status}`);
      if (cell.title) cell.title = "";
    },
    remove(id) {
      pods.get(id)?.remove();
      pods.delete(id);
      states.delete(id);
    },
    about(node) {
      if (shown === node) return;
      const focused = element.contains(document.activeElement) ? document.activeElement.dataset.action : undefined;
      shown = node;
      this.node = node.id;
      element.className = `panel node edge-${node.state}`;
      head.replaceChildren(
        h("h2", {}, mark(node.state), h("a", { href: address(node) }, breakable(name))),
        h("span", { class: "status" }, node.status),
      );
      setText(taints, node.taints?.length ? `Taints: ${node.taints.join(", ")}` : "");
      const offered = !node.simulated ? [] : typeof node.failed === "boolean" ? [node.failed ? "recover" : "fail"] : ["fail", "recover"];
      if (buttons.dataset.offered !== offered.join()) {
        buttons.dataset.offered = offered.join();
        buttons.replaceChildren(...offered.map((each) => button(each, each === "fail" ? "Fail" : "Recover")));
        if (focused) buttons.querySelector("button")?.focus();
      }
    },
    finish(gone) {
      if (gone) setText(taints, "This node is not there any more.");
      const tallies = {};
      for (const state of states.values()) tallies[state] = (tallies[state] ?? 0) + 1;
      const parts = Object.keys(STATES).filter((state) => tallies[state]).map((state) => `${count(tallies[state])} ${STATES[state].toLowerCase()}`);
      setText(tally, pods.size ? `${plural(pods.size, "pod")}: ${parts.join(", ")}` : "No pods.");
      grid.hidden = !pods.size;
      for (const [id, cell] of pods) {
        if (grid.childElementCount >= CELLS) break;
        if (!cell) this.put(store.objects.get(id));
      }
      const left = [...pods.values()].filter((cell) => !cell).length;
      rest.hidden = !left;
      setText(rest, `${count(left)} more`);
      if (grid.firstElementChild && !grid.querySelector('[tabindex="0"]')) grid.firstElementChild.tabIndex = 0;
    },
  };
}

/** Arrow keys move the focus from cell to cell of one grid, so that a grid is one stop of the Tab key. */
function walk(event) {
  const cell = event.target.closest(".cell");
  if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
  const cells = [...cell.parentElement.children];
  const at = cells.indexOf(cell);
  const perRow = cells.findIndex((each) => each.offsetTop !== cells[0].offsetTop);
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perRow, ArrowUp: -perRow, Home: -at, End: cells.length - 1 - at };
  const step = steps[event.key];
  if (step === undefined || (perRow < 0 && /Up|Down/.test(event.key))) return;
  event.preventDefault();
  cells[Math.max(0, Math.min(cells.length - 1, at + step))].focus();
}
