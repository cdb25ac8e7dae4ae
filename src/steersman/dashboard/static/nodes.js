// The nodes, each with its pods as a grid of cells; a cell changes its class and nothing else when its pod changes.

import { post } from "./api.js";
import { address, announce, breakable, count, h, mark, named, plural, setText, sliced, STATES, throttled } from "./dom.js";

const CELLS = 400;
const INTERVAL = 200; // milliseconds; each update lays out and paints the cards that are in sight
const UNSCHEDULED = "";

/** Names in the order that people count: node-2 before node-10. Pods without a node come first. */
const { compare } = new Intl.Collator("en", { numeric: true }); // making one is slow

export function nodes({ store }) {
  const cards = new Map(); // by the name of the node; pods without a node have a card of their own
  const order = []; // the names of the cards, sorted
  const places = new Map(); // the node's name of each pod, by uid
  const uids = new Map(); // the name of each node, by uid
  const touched = new Set(); // the names of the cards that differ from what they show
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

  /** Note what has changed; the document is touched when the cards are shown. */
  function take(id) {
    const object = store.objects.get(id);
    const before = places.get(id);
    const node = object?.kind === "Pod" ? object.node : undefined;
    if (before !== undefined && before !== node) {
      places.delete(id);
      touch(before, id);
    }
    if (node !== undefined) {
      places.set(id, node);
      touch(node, id);
    }
    if (object?.kind === "Node") {
      uids.set(id, object.name);
      touch(object.name);
    } else if (uids.has(id)) {
      touch(uids.get(id));
      uids.delete(id);
    }
  }

  function touch(name, pod) {
    let card = cards.get(name);
    if (!card) cards.set(name, (card = nodeCard(name, store)));
    if (pod !== undefined) card.changed.add(pod);
    touched.add(name);
  }

  function show(name) {
    const card = cards.get(name);
    const node = name === UNSCHEDULED ? undefined : store.find("Node", "", name);
    card.show(node);
    const at = placeOf(name);
    const there = order[at] === name;
    if (!card.pods.size && !node) {
      cards.delete(name);
      card.element.remove();
      if (there) order.splice(at, 1);
    } else if (!there) {
      list.insertBefore(card.element, at < order.length ? cards.get(order[at]).element : null);
      order.splice(at, 0, name);
    }
  }

  function placeOf(name) {
    let [low, high] = [0, order.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      // Names that count as equal are in the order of their characters.
      const difference = compare(order[middle], name) || (order[middle] < name ? -1 : order[middle] > name ? 1 : 0);
      if (difference < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  const showTouched = sliced(touched, show, () => {
    const named = cards.size - (cards.has(UNSCHEDULED) ? 1 : 0);
    setText(shown, !store.synced ? "Reading the cluster …" : named ? `${plural(named, "node")} with ${plural(places.size, "pod")}. Arrow keys move between pods, Enter opens one.` : "This cluster has no nodes.");
  });
  const update = throttled(INTERVAL, showTouched);

  for (const id of store.objects.keys()) take(id);
  const first = [...touched].sort(compare);
  touched.clear();
  for (const name of first) touched.add(name);
  showTouched();
  const unsubscribe = store.subscribe((changed) => {
    for (const id of changed) take(id);
    update();
  });

  return {
    element,
    title: "Nodes",
    close() {
      unsubscribe();
      update.cancel();
      showTouched.cancel();
    },
  };
}

function nodeCard(name, store) {
  const pods = new Map(); // the cell of each pod, by uid; null for those beyond the limit
  const changed = new Set(); // the uids of pods that came, changed or left
  const grid = h("div", { class: "grid", role: "group", "aria-label": name ? `Pods of ${name}` : "Pods without a node" });
  const title = h("h2", {}, name ? breakable(name) : "Not on a node yet");
  const status = h("span", { class: "status" });
  const taints = h("p", { class: "taints muted" });
  const tally = h("p", { class: "tally muted" });
  const problem = h("p", { class: "problem", role: "alert" });
  const buttons = h("div", { class: "buttons" });
  const rest = h("a", { class: "rest", hidden: true, href: `#/?${new URLSearchParams({ kind: "Pod", node: name })}` });
  const element = h("section", { class: "panel node", "aria-label": name || "Pods without a node", "data-node": name }, h("div", { class: "node-head" }, title, status), taints, grid, rest, tally, buttons, problem);
  let link = null; // to the page of the node
  let state = null;

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

  function put(pod) {
    let cell = pods.get(pod.id) ?? null;
    if (!cell && grid.childElementCount < CELLS) {
      cell = h("a", { href: address(pod), tabindex: "-1" });
      grid.append(cell);
    }
    pods.set(pod.id, cell);
    if (!cell) return;
    const look = `cell cell-${pod.state in STATES ? pod.state : "waits"}`;
    if (cell.className !== look) cell.className = look;
    const label = `${pod.namespace}/${pod.name}: ${pod.status}`;
    if (cell.getAttribute("aria-label") === label) return;
    cell.setAttribute("aria-label", label);
    if (cell.title) cell.title = "";
  }

  function showPods() {
    const fresh = [];
    for (const id of changed) {
      const pod = store.objects.get(id);
      if (pod?.kind !== "Pod" || pod.node !== name) {
        pods.get(id)?.remove();
        pods.delete(id);
      } else if (pods.has(id)) put(pod);
      else fresh.push(pod);
    }
    changed.clear();
    for (const pod of fresh.sort((one, other) => compare(named(one), named(other)))) put(pod);
    if (pods.size > grid.childElementCount) {
      for (const [id, cell] of pods) {
        if (grid.childElementCount >= CELLS) break;
        if (!cell) put(store.objects.get(id));
      }
    }
    const tallies = {};
    for (const id of pods.keys()) {
      const each = store.objects.get(id)?.state;
      tallies[each] = (tallies[each] ?? 0) + 1;
    }
    const parts = Object.keys(STATES).filter((each) => tallies[each]).map((each) => `${count(tallies[each])} ${STATES[each].toLowerCase()}`);
    setText(tally, pods.size ? `${plural(pods.size, "pod")}: ${parts.join(", ")}` : "No pods.");
    grid.hidden = !pods.size;
    const left = pods.size - grid.childElementCount;
    rest.hidden = !left;
    setText(rest, `${count(left)} more`);
    if (grid.firstElementChild && !grid.querySelector('[tabindex="0"]')) grid.firstElementChild.tabIndex = 0;
  }

  /** Show the node itself. It is another one whenever its number of pods changes: only what differs is touched. */
  function showNode(node) {
    if (!link) {
      link = h("a", { href: address(node) }, breakable(name));
      title.replaceChildren(link);
    }
    if (state !== node.state) {
      state = node.state;
      element.className = `panel node edge-${state}`;
      title.querySelector(".mark")?.remove();
      title.prepend(mark(state));
    }
    setText(status, node.status);
    const focused = buttons.contains(document.activeElement);
    const offered = !node.simulated ? [] : typeof node.failed === "boolean" ? [node.failed ? "recover" : "fail"] : ["fail", "recover"];
    if (buttons.dataset.offered !== offered.join()) {
      buttons.dataset.offered = offered.join();
      buttons.replaceChildren(...offered.map((each) => button(each, each === "fail" ? "Fail" : "Recover")));
      if (focused) buttons.querySelector("button")?.focus();
    }
  }

  return {
    element,
    pods,
    changed,
    /** Show the node, if there is one, and the pods that have changed. */
    show(node) {
      if (node) showNode(node);
      const tainted = node?.taints?.length ? `Taints: ${node.taints.join(", ")}` : "";
      setText(taints, node || name === UNSCHEDULED ? tainted : "This node is not there any more.");
      showPods();
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
