// The page of one object: why it is as it is, its owner graph, its timeline, events, conditions, and YAML.

import { get, Refused } from "./api.js";
import { address, announce, breakable, h, mark, named, refill, since, throttled, timeElement } from "./dom.js";
import { picture } from "./graph.js";
import { timeline } from "./timeline.js";

const AGAIN = 1000; // milliseconds between two looks, at least
const IDLE = 10000; // between two looks when nothing is known to have changed

export function object({ store, route, refused }) {
  const [kind, ...names] = route.parts;
  const name = names.pop() ?? "";
  const namespace = names.pop() ?? "";
  const subject = { kind, namespace, name };
  const parts = Object.fromEntries(["head", "why", "graph", "timeline", "conditions", "events", "text", "yaml"].map((part) => [part, h("div", { class: `part-${part}` })]));
  const section = (id, title, part) => h("section", { class: `panel section-${id}`, "aria-labelledby": `h-${id}` }, h("h2", { id: `h-${id}` }, title), part);
  const folding = (id, title, part, ...more) => h("section", { class: `panel section-${id}`, "aria-label": title }, h("details", {}, h("summary", {}, h("h2", {}, title)), ...more, part));
  const copied = h("span", { class: "muted" });
  const copy = h("button", { type: "button", on: { click: copyYaml } }, "Copy");
  const sections = h(
    "div",
    { class: "sections", hidden: true },
    section("why", "Why", parts.why),
    section("graph", "Owners and dependants", parts.graph),
    section("timeline", "Timeline", parts.timeline),
    h("div", { class: "beside" }, section("conditions", "Conditions", parts.conditions), section("events", "Events", parts.events)),
    folding("text", "The page of steersman why", parts.text),
    folding("yaml", "YAML", parts.yaml, h("p", { class: "buttons" }, copy, copied)),
  );
  const state = h("span");
  const message = h("p", { class: "muted", role: "status" }, "Reading …");
  const element = h(
    "div",
    { class: "object" },
    h("nav", { class: "crumbs", "aria-label": "Place" }, crumbs(subject)),
    h("h1", { tabindex: "-1" }, h("span", { class: "kind" }, kind), " ", breakable(name)),
    parts.head,
    message,
    sections,
  );

  let shown = {};
  let related = new Set();
  let document_ = null;
  let known = false; // whether the stream tells of it
  let stopped = false;
  let reading = null;
  const kept = {}; // what a reader has chosen in the timeline

  /** Draw a part if what it shows is another than before. */
  function draw(part, value, render) {
    const key = JSON.stringify(value) ?? "";
    if (shown[part] === key) return;
    shown[part] = key;
    refill(parts[part], render(value));
  }

  function render() {
    const { summary, explanation, graph, events, conditions, text, yaml } = document_;
    const now = store.now();
    const wasWell = JSON.parse(shown.why || "null")?.well;
    if (wasWell !== undefined && explanation && wasWell !== explanation.well) announce(`${named(subject)}: ${explanation.first}`);
    // A rollout that waits for what never comes is failing, though its own status does not say so yet.
    const first = explanation?.well ? null : explanation?.findings?.[0];
    draw("head", summary.state === "waits" && LEVELS[first?.weight] === "bad" ? { ...summary, state: "bad" } : summary, headline);
    draw("why", explanation && { ...explanation, at: undefined }, reasons);
    draw("graph", graph, (value) => (value?.nodes?.length ? picture(value, summary.id) : h("p", { class: "muted" }, "No owners and no dependants.")));
    renderTimeline();
    draw("conditions", conditions, (value) => conditionTable(value, now));
    draw("events", events, (value) => eventList(value, now));
    draw("text", text, (value) => h("pre", { tabindex: "0", "data-scroll": "text", "data-key": "text" }, value ?? ""));
    draw("yaml", yaml, (value) => h("pre", { class: "yaml", tabindex: "0", "data-scroll": "yaml", "data-key": "yaml" }, highlighted(value ?? "")));
    sections.hidden = false;
    message.hidden = true;
  }

  function renderTimeline() {
    draw("timeline", [document_.timeline, [...(kept.without ?? [])], kept.limit], () =>
      timeline(document_.timeline ?? [], store.now(), kept, renderTimeline),
    );
  }

  /** Whether the object was there and has been deleted since: then there is nothing to ask for. */
  function isDeleted() {
    return document_ !== null && known && !store.find(kind, namespace, name);
  }

  async function read() {
    reading?.abort();
    if (isDeleted()) {
      message.hidden = false;
      message.textContent = `${named(subject)} is gone: it was deleted. This is what it was like.`;
      return;
    }
    const mine = (reading = new AbortController());
    try {
      document_ = await get("object", { parameters: { kind, namespace, name }, signal: mine.signal });
      related = new Set([document_.summary.id, ...(document_.graph?.nodes ?? []).map((node) => node.id)]);
      known = store.objects.has(document_.summary.id);
      if (!stopped) render();
    } catch (error) {
      if (stopped || mine.signal.aborted) return;
      if (error instanceof Refused && error.code === 401) refused(error);
      else {
        message.hidden = false;
        message.textContent = error instanceof Refused ? error.message : "The plane did not answer. The page tries again.";
        if (error.code === 404) sections.hidden = true;
      }
    }
  }

  const again = throttled(AGAIN, read);
  read();
  const timer = setInterval(again, IDLE);
  const unsubscribe = store.subscribe((changed) => {
    for (const id of changed) {
      const each = store.objects.get(id);
      if (related.has(id) || (each && (related.has(each.owner) || (each.kind === kind && each.name === name && each.namespace === namespace)))) {
        again();
        return;
      }
    }
  });

  async function copyYaml() {
    try {
      await navigator.clipboard.writeText(document_.yaml);
      copied.textContent = "Copied.";
    } catch {
      // Not allowed here: select it, so that a key does it.
      getSelection().selectAllChildren(parts.yaml);
      copied.textContent = "Selected: press Ctrl+C to copy.";
    }
    announce(copied.textContent);
  }

  function headline(summary) {
    state.replaceChildren(mark(summary.state, { word: true }));
    const facts = [
      ["State", state],
      ["Status", summary.status],
      ["Namespace", summary.namespace ? h("a", { href: `#/?namespace=${encodeURIComponent(summary.namespace)}` }, summary.namespace) : ""],
      ["Node", summary.node ? h("a", { href: address({ kind: "Node", name: summary.node }) }, summary.node) : ""],
      ["Created", timeElement(summary.created, store.now())],
    ];
    return h("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value))));
  }

  return {
    element,
    title: named(subject),
    close() {
      stopped = true;
      reading?.abort();
      unsubscribe();
      again.cancel();
      clearInterval(timer);
    },
  };
}

// -- the parts ------------------------------------------------------------------------------------

function crumbs({ kind, namespace }) {
  const links = [h("a", { href: "#/" }, "Overview")];
  if (kind === "Node") links.push(h("a", { href: "#/nodes" }, "Nodes"));
  else links.push(h("a", { href: `#/?kind=${encodeURIComponent(kind)}` }, `${kind}s`));
  if (namespace) links.push(h("a", { href: `#/?${new URLSearchParams({ kind, namespace })}` }, namespace));
  return h("ol", {}, links.map((link) => h("li", {}, link)));
}

function link(ref) {
  return h("a", { href: address(ref), "data-key": `ref ${named(ref)}` }, `${ref.kind} ${ref.name}`);
}

const LEVELS = { root: "bad", blocked: "bad", waits: "waits", consequence: "waits" };

/** The explanation: what is wanted and what is, then the causes, then what each loop says when asked. */
function reasons(told) {
  if (!told) return h("p", { class: "muted" }, "There is no explanation of this kind.");
  const [first, ...others] = told.findings ?? [];
  return [
    h("p", { class: "summary" }, told.summary),
    told.well ? h("p", { class: "finding edge-ok" }, mark("ok"), "All is as it should be.") : first ? finding(first) : h("p", { class: "muted" }, "No cause is known."),
    (told.well ? [first, ...others].filter(Boolean) : others).length
      ? h("details", { open: others.length < 4 }, h("summary", {}, h("h3", {}, "Also")), h("ul", { class: "plain" }, (told.well ? [first, ...others] : others).slice(0, 20).map((each) => h("li", {}, each.weight === "note" ? h("span", { class: "dot dot-condition note", "aria-hidden": "true" }) : mark(LEVELS[each.weight]), h("span", {}, link(each.subject), each.others?.length ? ` and ${each.others.length} more` : "", `: ${each.cause}.`)))))
      : null,
    told.decisions?.length ? [h("h3", {}, "The loops, asked now"), h("ul", { class: "plain loops" }, told.decisions.map((each) => h("li", {}, h("b", {}, each.controller), ` ${each.would?.length ? `would ${each.would.join(", then ")}; ` : ""}${each.verdict}`)))] : null,
    told.unread?.length ? h("p", { class: "muted" }, `Not read, so a cause may be missing: ${told.unread.join("; ")}`) : null,
  ];
}

function finding(found) {
  const state = LEVELS[found.weight] ?? "bad";
  const more = found.others?.length ? ` and ${found.others.length} more` : "";
  const facts = [["Loop", found.controller], ["Next", found.next], ["To do", found.remedy]].filter(([, text]) => text);
  return h(
    "div",
    { class: `finding edge-${state}` },
    h("p", { class: "cause" }, mark(state), h("span", {}, link(found.subject), more, `: ${found.cause}.`)),
    facts.length ? h("dl", {}, facts.map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text)))) : null,
  );
}

function conditionTable(conditions, now) {
  if (!conditions?.length) return h("p", { class: "muted" }, "This object reports no conditions.");
  return h(
    "ul",
    { class: "plain conditions" },
    conditions.map((each) => h("li", {}, h("div", {}, h("b", {}, each.type), " ", h("span", { class: "tag" }, each.status), " ", each.reason ? h("span", {}, each.reason) : null, " ", each.since ? h("span", { class: "muted" }, `for ${since(each.since, now)}`) : null), each.message ? h("p", { class: "muted" }, each.message) : null)),
  );
}

function eventList(events, now) {
  if (!events?.length) return h("p", { class: "muted" }, "No events.");
  return h(
    "ol",
    { class: "plain events" },
    events.map((each) => h("li", {}, h("div", {}, mark(each.type === "Warning" ? "bad" : "ok"), h("b", {}, each.reason), each.count > 1 ? h("span", { class: "tag" }, `${each.count}×`) : null, " ", timeElement(each.at, now)), h("p", {}, each.message), each.from ? h("p", { class: "muted" }, each.from) : null)),
  );
}

/** YAML with its keys set apart. */
function highlighted(yaml) {
  return yaml.split(/(?<=\n)/).flatMap((line) => {
    const found = /^(\s*(?:- )*)([^\s:#'"][^:#]*)(:(?:\s[^]*)?)$/.exec(line);
    return found ? [found[1], h("span", { class: "key" }, found[2]), found[3]] : [line];
  });
}
