// The overview: what is not converged and why, counts, and the workloads, with a filter that is part of the address.

import { address, breakable, count, h, mark, named, plural, setText, since, STATES, throttled } from "./dom.js";

const WORKLOADS = new Set(["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "ReplicationController", "Pod"]);
const ROWS = 100;
const FIELDS = ["q", "kind", "namespace", "state", "node"];

export function overview({ store, route, replaceRoute }) {
  const filter = Object.fromEntries(FIELDS.map((field) => [field, route.query.get(field) ?? ""]));
  let limit = ROWS;
  const rows = new Map();
  let blocked = new Set(); // what waits for something that never comes, by the explanations
  const stateOf = (each) => (each.state === "waits" && blocked.has(each.id) ? "bad" : each.state);

  // -- the elements -----------------------------------------------------------------------------

  const problems = h("ul", { class: "problems" });
  const unread = h("p", { class: "muted" });
  const counts = h("dl", { class: "counts" });
  const search = h("input", { type: "search", id: "filter", value: filter.q, placeholder: "name, or any word", autocomplete: "off", spellcheck: "false", on: { input: chosen } });
  const selects = {
    kind: h("select", { id: "filter-kind", on: { change: chosen } }),
    namespace: h("select", { id: "filter-namespace", on: { change: chosen } }),
    state: h("select", { id: "filter-state", on: { change: chosen } }),
  };
  const shown = h("p", { class: "shown muted", role: "status" });
  const body = h("tbody");
  const columns = ["Name", "Kind", "Namespace", "Ready", "Status", "Age"];
  const table = h("table", { class: "objects" }, h("thead", {}, h("tr", {}, columns.map((each) => h("th", { scope: "col", class: `c-${each.toLowerCase()}` }, each)))), body);
  const more = h("button", { type: "button", hidden: true, on: { click: showMore } });
  const title = h("h2", { id: "workloads" }, "Workloads");
  const clear = h("button", { type: "button", class: "quiet", hidden: true, on: { click: clearFilter } }, "Clear filter");

  const element = h(
    "div",
    { class: "overview" },
    h("h1", { tabindex: "-1" }, "Overview"),
    h("section", { "aria-labelledby": "not-converged", class: "panel" }, h("h2", { id: "not-converged" }, "Not converged"), problems, unread),
    counts,
    h(
      "section",
      { "aria-labelledby": "workloads", class: "panel" },
      title,
      h(
        "form",
        { class: "filter", role: "search", on: { submit: (event) => event.preventDefault() } },
        label("Filter", search),
        label("Kind", selects.kind),
        label("Namespace", selects.namespace),
        label("State", selects.state),
        clear,
        shown,
      ),
      table,
      more,
    ),
  );
  options(selects.state, [["", "any"], ...Object.entries(STATES)], filter.state);

  // -- the filter -------------------------------------------------------------------------------

  function chosen() {
    filter.q = search.value;
    for (const [field, select] of Object.entries(selects)) filter[field] = select.value;
    limit = ROWS;
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    replaceRoute(query.size ? `#/?${query}` : "#/");
    renderRows();
  }

  function clearFilter() {
    for (const field of FIELDS) filter[field] = "";
    search.value = "";
    for (const select of Object.values(selects)) select.value = "";
    chosen();
    search.focus();
  }

  function showMore() {
    const first = limit;
    limit += 2 * ROWS;
    renderRows();
    body.rows[first]?.querySelector("a")?.focus();
  }

  function matching() {
    const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (const each of store.objects.values()) {
      if (filter.kind ? each.kind !== filter.kind : !isWorkload(each)) continue;
      if (filter.namespace && each.namespace !== filter.namespace) continue;
      if (filter.state && stateOf(each) !== filter.state) continue;
      if (filter.node && each.node !== filter.node) continue;
      if (words.length) {
        const text = `${each.kind} ${each.namespace}/${each.name} ${each.status} ${STATES[stateOf(each)]} ${each.node}`.toLowerCase();
        if (!words.every((word) => text.includes(word))) continue;
      }
      found.push(each);
    }
    return found.sort(byName);
  }

  /** Whether an object stands at the top of a workload: what it owns is shown on its page. */
  function isWorkload(each) {
    return WORKLOADS.has(each.kind) && !(each.owner && store.objects.has(each.owner));
  }

  // -- drawing ----------------------------------------------------------------------------------

  function renderRows() {
    const found = matching();
    const visible = found.slice(0, limit);
    const now = store.now();
    const kept = new Set();
    let place = body.firstElementChild;
    for (const each of visible) {
      kept.add(each.id);
      let row = rows.get(each.id);
      if (!row) rows.set(each.id, (row = newRow(each)));
      row.show(each, stateOf(each), now);
      if (row.element === place) place = place.nextElementSibling;
      else body.insertBefore(row.element, place);
    }
    for (const [id, row] of rows) {
      if (kept.has(id)) continue;
      row.element.remove();
      rows.delete(id);
    }
    const filtered = Object.values(filter).some(Boolean);
    clear.hidden = !filtered;
    setText(title, filter.kind ? `${filter.kind}s${filter.node ? ` on ${filter.node}` : ""}` : "Workloads");
    const noun = filter.kind || "workload";
    setText(shown, !store.synced ? "Reading the cluster …" : found.length ? `${plural(found.length, noun)}${filtered ? " match" : ""}` : filtered ? "Nothing matches the filter." : "There are no workloads yet.");
    table.hidden = !found.length;
    more.hidden = found.length <= limit;
    setText(more, `Show more (${count(found.length - visible.length)} left)`);
  }

  function renderSummary() {
    const kinds = new Set();
    const namespaces = new Set();
    const tally = { pods: newTally(), workloads: newTally(), nodes: newTally() };
    for (const each of store.objects.values()) {
      kinds.add(each.kind);
      if (each.namespace) namespaces.add(each.namespace);
      if (each.kind === "Pod") tally.pods[each.state] += 1;
      if (each.kind === "Node") tally.nodes[each.state] += 1;
      if (isWorkload(each)) tally.workloads[stateOf(each)] += 1;
    }
    showTally(counts, "Workloads", tally.workloads, "#/");
    showTally(counts, "Pods", tally.pods, "#/?kind=Pod");
    showTally(counts, "Nodes", tally.nodes, "#/nodes");
    options(selects.kind, [["", "workloads"], ...sorted(kinds, filter.kind)], filter.kind);
    options(selects.namespace, [["", "all"], ...sorted(namespaces, filter.namespace)], filter.namespace);
    setText(unread, store.unread.size ? `Not read: ${[...store.unread].map(([kind, why]) => `${kind} (${why})`).join("; ")}` : "");
    unread.hidden = !store.unread.size;
  }

  let shownProblems = null;
  const ages = new Map();

  function renderProblems() {
    if (store.problems !== shownProblems) {
      shownProblems = store.problems;
      blocked = new Set(store.problems.filter((each) => each.state === "bad").map((each) => each.id));
      const focused = problems.contains(document.activeElement) ? document.activeElement.hash : "";
      ages.clear();
      problems.replaceChildren(...store.problems.map((each) => problemItem(each, ages)));
      if (!store.problems.length) problems.append(h("li", { class: "empty" }, store.synced ? [mark("ok"), " Everything is as it should be."] : "Reading the cluster …"));
      if (focused) [...problems.querySelectorAll("a")].find((link) => link.hash === focused)?.focus({ preventScroll: true });
    }
    const now = store.now();
    for (const [problem, age] of ages) setText(age, problem.since ? `for ${since(problem.since, now)}` : "");
  }

  const render = throttled(150, () => {
    renderProblems();
    renderSummary();
    renderRows();
  });
  const unsubscribe = store.subscribe(render);
  const timer = setInterval(render, 1000);
  renderProblems();
  renderSummary();
  renderRows();

  return {
    element,
    title: "Overview",
    close() {
      unsubscribe();
      clearInterval(timer);
      render.cancel();
    },
  };
}

// -- the parts ------------------------------------------------------------------------------------

function label(text, control) {
  return h("label", { for: control.id }, h("span", {}, text), control);
}

function options(select, pairs, value) {
  const key = JSON.stringify(pairs);
  if (select.dataset.options === key) return;
  select.dataset.options = key;
  select.replaceChildren(...pairs.map(([each, text]) => h("option", { value: each }, text)));
  select.value = value;
}

/** The choices of a select; the chosen one stays, though no object has it at the moment. */
function sorted(values, chosen) {
  return [...new Set([...values, chosen].filter(Boolean))].sort().map((each) => [each, each]);
}

const newTally = () => Object.fromEntries(Object.keys(STATES).map((state) => [state, 0]));

function showTally(list, name, tally, link) {
  let group = list.querySelector(`[data-name="${name}"]`);
  if (!group) {
    const bar = h("span", { class: "bar", "aria-hidden": "true" }, Object.keys(STATES).reverse().map((state) => h("span", { class: `fill-${state}` })));
    const parts = Object.keys(STATES).map((state) => h("span", { "data-state": state, class: "part" }, mark(state), h("b"), ` ${STATES[state].toLowerCase()}`));
    group = h("div", { "data-name": name, class: "count" }, h("dt", {}, h("a", { href: link }, name)), h("dd", { class: "total" }), h("dd", { class: "parts" }, bar, parts));
    list.append(group);
  }
  const total = Object.values(tally).reduce((sum, each) => sum + each, 0);
  setText(group.querySelector(".total"), count(total));
  for (const [state, number] of Object.entries(tally)) {
    const part = group.querySelector(`[data-state="${state}"]`);
    part.hidden = !number;
    setText(part.querySelector("b"), count(number));
    const fill = group.querySelector(`.fill-${state}`);
    fill.hidden = !number;
    fill.style.setProperty("flex-grow", number);
  }
}

function problemItem(problem, ages) {
  const age = h("span", { class: "age muted" });
  ages.set(problem, age);
  return h(
    "li",
    { class: `problem-item edge-${problem.state}` },
    mark(problem.state),
    h("a", { href: address(problem) }, breakable(named(problem))),
    age,
    h("p", {}, problem.cause),
    problem.next || problem.remedy ? h("p", { class: "muted" }, [problem.next && `Next: ${problem.next}.`, problem.remedy && `To do: ${problem.remedy}.`].filter(Boolean).join(" ")) : null,
  );
}

function byName(one, other) {
  return one.namespace < other.namespace ? -1 : one.namespace > other.namespace ? 1 : one.name < other.name ? -1 : one.name > other.name ? 1 : one.kind < other.kind ? -1 : 1;
}

/** The status without what the columns beside it say. */
function statusWords({ status, ready, wanted }, state) {
  const counted = `${ready}/${wanted} ready`;
  return (status.startsWith(counted) ? status.slice(counted.length).replace(/^, /, "") : status) || STATES[state] || "";
}

/** A row of the table. Only what differs from what it shows is touched. */
function newRow(first) {
  const cells = {
    name: h("th", { scope: "row", class: "c-name" }),
    kind: h("td", { class: "c-kind" }, first.kind),
    namespace: h("td", { class: "c-namespace" }, first.namespace),
    ready: h("td", { class: "c-ready" }),
    status: h("td", { class: "c-status" }),
    age: h("td", { class: "c-age" }),
  };
  const link = h("a", { href: address(first) }, breakable(first.name));
  const fill = h("span", { class: "meter-fill" });
  const meter = h("span", { class: "meter", "aria-hidden": "true" }, fill);
  const ready = h("span");
  cells.ready.append(meter, ready);
  const element = h("tr", {}, Object.values(cells));
  let shown = null;
  let shownState = "";
  return {
    element,
    show(each, state, now) {
      setText(cells.age, since(each.created, now));
      if (shown === each && shownState === state) return;
      if (shownState !== state) {
        cells.name.replaceChildren(mark(state), link);
        element.className = `row-${state}`;
      }
      const counted = Number.isFinite(each.wanted);
      meter.hidden = !counted;
      setText(ready, counted ? `${count(each.ready ?? 0)}/${count(each.wanted)}` : "");
      const share = counted && each.wanted > 0 ? Math.min(1, (each.ready ?? 0) / each.wanted) : counted ? 1 : 0;
      fill.style.setProperty("width", `${Math.round(share * 100)}%`);
      setText(cells.status, statusWords(each, state));
      shown = each;
      shownState = state;
    },
  };
}
