// The owner graph as a picture: objects in layers from left to right, each edge drawn in the style of its relation.

import { address, count, h, named, plural, s, STATES } from "./dom.js";

const WIDTH = 216;
const HEIGHT = 52;
const COLUMN_GAP = 64;
const ROW_GAP = 14;
const MARGIN = 10;
const INDENT = 24; // of an outline
/** Siblings of one kind that are drawn; the others are one box. */
const SIBLINGS = 8;
const SEVERITY = ["bad", "waits", "gone", "ok", "done"];

const severity = (state) => (SEVERITY.indexOf(state) + SEVERITY.length + 1) % (SEVERITY.length + 1);

/**
 * Where boxes and edges go: a pure function of the graph, so that equal graphs give equal pictures.
 * Gives `boxes` (a node of the graph or a folded group, with x and y), `edges`, `width` and `height`.
 */
export function layout({ nodes, edges }) {
  const folded = fold(nodes, edges);
  const layers = layered(folded.nodes, folded.edges);
  arrange(layers, folded.edges);
  const height = Math.max(0, ...layers.map((layer) => layer.length * (HEIGHT + ROW_GAP) - ROW_GAP));
  const boxes = new Map();
  layers.forEach((layer, column) => {
    const own = layer.length * (HEIGHT + ROW_GAP) - ROW_GAP;
    layer.forEach((node, row) => {
      const x = MARGIN + column * (WIDTH + COLUMN_GAP);
      boxes.set(node.id, { ...node, x, y: MARGIN + (height - own) / 2 + row * (HEIGHT + ROW_GAP) });
    });
  });
  return {
    boxes: [...boxes.values()],
    edges: folded.edges.map((edge) => ({ ...edge, start: boxes.get(edge.from), end: boxes.get(edge.to) })),
    width: Math.max(0, layers.length * (WIDTH + COLUMN_GAP) - COLUMN_GAP) + 2 * MARGIN,
    height: height + 2 * MARGIN,
  };
}

/** The same for narrow screens: an indented list, with the edge by which each box is reached first. */
export function outline({ nodes, edges }) {
  const folded = fold(nodes, edges);
  const pointed = new Set(folded.edges.map((edge) => edge.to));
  const boxes = new Map();
  const followed = [];
  const visit = (node, depth) => {
    boxes.set(node.id, { ...node, x: MARGIN + depth * INDENT, y: MARGIN + boxes.size * (HEIGHT + ROW_GAP) });
    for (const edge of folded.edges) {
      if (edge.from !== node.id || boxes.has(edge.to)) continue;
      followed.push(edge);
      visit(folded.nodes.find((each) => each.id === edge.to), depth + 1);
    }
  };
  for (const node of folded.nodes) if (!pointed.has(node.id)) visit(node, 0);
  for (const node of folded.nodes) if (!boxes.has(node.id)) visit(node, 0);
  const placed = [...boxes.values()];
  return {
    boxes: placed,
    edges: followed.map((edge) => ({ ...edge, start: boxes.get(edge.from), end: boxes.get(edge.to), elbow: true })),
    width: Math.max(0, ...placed.map((box) => box.x)) + WIDTH + MARGIN,
    height: placed.length * (HEIGHT + ROW_GAP) - ROW_GAP + 2 * MARGIN,
  };
}

/** Many siblings of one kind become a few, the worst first, and one box for the others. */
function fold(nodes, edges) {
  const known = new Set(nodes.map((node) => node.id));
  const sound = edges.filter((edge) => known.has(edge.from) && known.has(edge.to) && edge.from !== edge.to);
  const owners = new Map();
  for (const edge of sound) if (edge.relation === "owns") owners.set(edge.to, edge.from);
  const families = new Map();
  for (const node of nodes) {
    const key = `${owners.get(node.id) ?? node.relation ?? ""} ${node.kind}`;
    families.set(key, [...(families.get(key) ?? []), node]);
  }
  const kept = [];
  const replaced = new Map();
  for (const [key, family] of families) {
    const ordered = family.length > SIBLINGS ? [...family].sort((one, other) => severity(one.state) - severity(other.state)) : family;
    const others = family.length > SIBLINGS ? ordered.splice(SIBLINGS - 1) : [];
    kept.push(...ordered);
    if (!others.length) continue;
    const group = { id: `group ${key}`, kind: others[0].kind, members: others, state: others[0].state };
    kept.push(group);
    for (const each of others) replaced.set(each.id, group.id);
  }
  const links = new Map();
  for (const edge of sound) {
    const link = { ...edge, from: replaced.get(edge.from) ?? edge.from, to: replaced.get(edge.to) ?? edge.to };
    if (link.from !== link.to) links.set(`${link.from} ${link.to} ${link.relation}`, link);
  }
  return { nodes: kept, edges: [...links.values()] };
}

/** Each node one layer behind the last of those that point to it; an edge that closes a circle is not followed. */
function layered(nodes, edges) {
  const incoming = new Map(nodes.map((node) => [node.id, []]));
  for (const edge of edges) incoming.get(edge.to).push(edge.from);
  const depth = new Map();
  const visiting = new Set();
  const visit = (id) => {
    if (depth.has(id)) return depth.get(id);
    if (visiting.has(id)) return -1;
    visiting.add(id);
    const found = Math.max(-1, ...incoming.get(id).map(visit)) + 1;
    visiting.delete(id);
    depth.set(id, found);
    return found;
  };
  const layers = [];
  for (const node of nodes) (layers[visit(node.id)] ??= []).push(node);
  return layers.filter(Boolean);
}

/** Order each layer by the middle of its neighbours, to and fro, so that few edges cross. */
function arrange(layers, edges) {
  const neighbours = (end, other) => {
    const found = new Map();
    for (const edge of edges) found.set(edge[end], [...(found.get(edge[end]) ?? []), edge[other]]);
    return found;
  };
  const before = neighbours("to", "from");
  const after = neighbours("from", "to");
  for (let sweep = 0; sweep < 4; sweep += 1) {
    const forward = sweep % 2 === 0;
    const order = forward ? layers.slice(1) : layers.slice(0, -1).reverse();
    const places = new Map();
    for (const layer of layers) layer.forEach((node, row) => places.set(node.id, row / layer.length));
    for (const layer of order) {
      const weight = new Map(
        layer.map((node) => {
          const near = (forward ? before : after).get(node.id) ?? [];
          return [node.id, near.length ? near.reduce((sum, id) => sum + places.get(id), 0) / near.length : places.get(node.id)];
        }),
      );
      // The box for the others stands behind those that are drawn.
      layer.sort((one, other) => !!one.members - !!other.members || weight.get(one.id) - weight.get(other.id));
      layer.forEach((node, row) => places.set(node.id, row / layer.length));
    }
  }
}

/** The picture; `current` is the uid of the object that the page is about. */
export function picture(graph, current) {
  const plan = (matchMedia("(max-width: 640px)").matches ? outline : layout)(graph);
  const relations = [...new Set(plan.edges.map((edge) => edge.relation))];
  const label = plural(graph.nodes.length, "object");
  return h(
    "figure",
    { class: "graph" },
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Owner graph", "data-scroll": "graph", "data-key": "graph" },
      s(
        "svg",
        { width: plan.width, height: plan.height, viewBox: `0 0 ${plan.width} ${plan.height}`, role: "group", "aria-label": label },
        plan.edges.map(edgePath),
        plan.boxes.map((box) => drawnBox(box, current)),
      ),
    ),
    relations.length || graph.leftOut ? h("figcaption", { class: "legend muted" }, relations.map((each) => h("span", {}, s("svg", { class: "line", viewBox: "0 0 30 8", "aria-hidden": "true" }, s("path", { class: edgeClass(each), d: "M0 4h30" })), each)), graph.leftOut ? h("span", {}, `${plural(graph.leftOut, "more object")} not drawn`) : null) : null,
  );
}

const edgeClass = (relation) => `edge ${{ owns: "edge-owns", "runs on": "edge-runs" }[relation] ?? "edge-uses"}`;

function edgePath({ start, end, relation, elbow }) {
  if (elbow) return s("path", { class: edgeClass(relation), d: `M${start.x + INDENT / 2},${start.y + HEIGHT} V${end.y + HEIGHT / 2} H${end.x}` }, s("title", {}, relation));
  const forward = end.x > start.x;
  const from = [start.x + (forward ? WIDTH : WIDTH / 2), start.y + (forward ? HEIGHT / 2 : HEIGHT)];
  const to = [end.x + (forward ? 0 : WIDTH / 2), end.y + (forward ? HEIGHT / 2 : HEIGHT)];
  const bend = forward ? Math.max(24, (to[0] - from[0]) / 2) : 0;
  const drop = forward ? 0 : 40;
  const d = `M${from} C${from[0] + bend},${from[1] + drop} ${to[0] - bend},${to[1] + drop} ${to}`;
  return s("path", { class: edgeClass(relation), d }, s("title", {}, relation));
}

function drawnBox(box, current) {
  const group = box.members;
  const status = group ? groupStatus(group) : box.status;
  const title = group ? `${plural(group.length, `more ${box.kind}`)}: ${status}` : `${named(box)}: ${status}`;
  const state = box.state in STATES ? box.state : "waits";
  // The title is what a screen reader says and a pointer shows: the texts may be shortened.
  const content = [
    s("title", {}, title),
    s("rect", { class: `box edge-${state}`, width: WIDTH, height: HEIGHT, rx: 7 }),
    s("rect", { class: `stripe fill-${state}`, width: 5, height: HEIGHT - 14, x: 7, y: 7, rx: 2.5 }),
    s("text", { class: "box-kind", "aria-hidden": "true", x: 20, y: 19 }, group ? "and" : box.kind),
    s("text", { class: "box-status", "aria-hidden": "true", x: WIDTH - 28, y: 19, "text-anchor": "end" }, shorten(status ?? "", 24 - (group ? 3 : box.kind.length))),
    s("svg", { class: `icon state-${state}`, x: WIDTH - 24, y: 8, width: 14, height: 14, "aria-hidden": "true" }, s("use", { href: `#i-${state}` })),
    s("text", { class: "box-name", "aria-hidden": "true", x: 20, y: 40 }, group ? plural(group.length, `more ${box.kind}`) : shorten(box.name, 24)),
  ];
  const place = { transform: `translate(${box.x} ${box.y})`, class: `node-box${box.id === current ? " current" : ""}` };
  if (group || !box.kind) return s("g", place, content);
  return s("a", { ...place, href: address(box), "aria-current": box.id === current ? "page" : null, "data-key": `graph ${box.id}` }, content);
}

function groupStatus(members) {
  const tally = {};
  for (const each of members) tally[each.state] = (tally[each.state] ?? 0) + 1;
  return Object.entries(tally).map(([state, number]) => `${count(number)} ${(STATES[state] ?? state).toLowerCase()}`).join(", ");
}

/** A text that fits; names differ at their ends, so the middle is left out. */
function shorten(text, length) {
  const room = Math.floor(length);
  if (text.length <= room) return text;
  const tail = Math.ceil((room - 1) * 0.45);
  return `${text.slice(0, room - 1 - tail)}…${text.slice(-tail)}`;
}
