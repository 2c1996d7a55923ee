// The topology as a picture: the server has laid it out, here the numbers move.

import { keyed, mark, svg, write } from "./dom.js";
import { percent, rate } from "./format.js";
import { MOODS, SHARES } from "./moods.js";
import { go, place } from "./place.js";

const MARGIN = 13;
const FULL = 0.9;
let drawn = null; // the graph that stands there
let nodes = new Map();
let edges = new Map();

export function drawGraph(container, graph, components, subscriptions) {
  if (!graph) return;
  if (drawn !== graph) build(container, graph);
  for (const [id, node] of nodes) if (components.has(id)) updateNode(node, components.get(id), graph);
  const fastest = Math.max(1, ...[...subscriptions.values()].map((each) => each.rate ?? 0));
  for (const [id, edge] of edges) if (subscriptions.has(id)) updateEdge(edge, subscriptions.get(id), fastest);
}

function build(container, graph) {
  drawn = graph;
  nodes = new Map();
  edges = new Map();
  container.replaceChildren();
  if (graph.missing) {
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = graph.missing;
    container.append(note);
    return;
  }
  const { width, height } = graph;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "topology", role: "group",
    "aria-label": "components and what runs between them" }, definitions());
  const body = svg("g", { transform: `translate(${2 * MARGIN} ${MARGIN})` });
  picture.append(body);
  for (const edge of graph.edges) body.append(buildEdge(edge));
  for (const edge of graph.edges) body.append(buildLabel(edge));
  for (const node of graph.nodes) body.append(buildNode(node, graph));
  const frame = document.createElement("div");
  frame.className = "frame";
  frame.append(picture);
  container.append(frame);
}

function definitions() {
  const head = (id) =>
    svg("marker", { id, viewBox: "0 0 10 10", refX: 9.2, refY: 5, markerWidth: 9, markerHeight: 9,
      markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0 .8 10 5 0 9.2 2.4 5Z", class: id }));
  const hatch = svg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)" }, svg("rect", { width: 5, height: 5, class: "hatch-ground" }),
    svg("rect", { width: 2.2, height: 5, class: "hatch-line" }));
  return svg("defs", {}, head("head"), head("head-held"), hatch);
}

function buildEdge(edge) {
  const path = svg("path", { d: edge.path, class: "edge", "data-id": edge.id, "marker-end": "url(#head)" });
  if (!edge.tracked) path.classList.add("untracked");
  edges.set(edge.id, { path, place: edge });
  return path;
}

function buildLabel(edge) {
  const title = svg("title");
  const number = svg("text", { x: edge.x, y: edge.y - 3, class: "rate" });
  const words = svg("text", { x: edge.x, y: edge.y + 10, class: "grouping" }, short(edge.label, 15));
  const ground = svg("rect", { x: edge.x - 42, y: edge.y - 15, width: 84, height: 29, class: "ground" });
  Object.assign(edges.get(edge.id), { number, words, title });
  return svg("g", { class: "label" }, title, ground, number, words);
}

function short(text, most) {
  return text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(1 - most / 2)}`;
}

function buildNode(node, { node_width: width, node_height: height }) {
  const [left, top] = [node.x - width / 2, node.y - height / 2];
  const open = () => go({ view: "component", component: node.id });
  const parts = {
    title: svg("title"),
    box: svg("rect", { class: "box", width, height, rx: node.spout ? height / 2 : 9 }),
    name: svg("text", { class: "name", x: width / 2, y: 26 }, node.label),
    sign: svg("text", { class: "sign", x: width - (node.spout ? 26 : 12), y: 16 }),
    rate: svg("text", { class: "number", x: width / 2, y: 45 }),
    detail: svg("text", { class: "detail", x: width / 2, y: 60 }, node.details),
    bars: svg("g", { class: "shares" }),
    gauge: node.spout ? null : gauge(height),
  };
  const group = svg("g", { class: "node", transform: `translate(${left} ${top})`, "data-id": node.id, tabindex: 0,
    role: "link", onclick: open, onkeydown: (event) => event.key === "Enter" && open() },
    parts.title, parts.box, parts.gauge?.group, parts.name, parts.sign, parts.rate, parts.detail, parts.bars);
  nodes.set(node.id, { ...parts, group, place: node });
  return group;
}

// The queue stands at the side where tuples come in: its level is how full it is.
function gauge(height) {
  const tall = height - 16;
  const level = svg("rect", { class: "level", x: -9, width: 10, y: 8 + tall, height: 0 });
  const words = svg("text", { class: "full", x: -4, y: 2 });
  const tube = svg("rect", { class: "tube", x: -9, y: 8, width: 10, height: tall, rx: 3 });
  return { group: svg("g", { class: "gauge" }, tube, level, words), level, words, tall };
}

function updateNode(node, row, { node_width: width, node_height: height }) {
  const mood = MOODS[row.mood] ?? MOODS.well;
  const selected = place.view === "component" && place.component === node.place.id;
  mark(node.group, "class", `node ${node.place.spout ? "spout" : "bolt"} ${row.mood}${selected ? " selected" : ""}`);
  mark(node.group, "aria-label", `${node.place.id}: ${mood.words}, ${rate(row.rate)}`);
  write(node.title, `${node.place.id} ${mood.words}`);
  write(node.sign, mood.sign);
  write(node.rate, rate(row.rate));
  if (node.gauge) updateGauge(node.gauge, row.fill ?? 0);
  const inset = node.place.spout ? 30 : 12;
  updateShares(node.bars, row, inset, width - 2 * inset, height - 11);
}

function updateGauge({ group, level, words, tall }, fill) {
  const high = Math.round(fill * tall * 10) / 10;
  mark(level, "height", high);
  mark(level, "y", 8 + tall - high);
  mark(group, "class", `gauge ${fill >= FULL ? "full" : fill >= 0.5 ? "high" : "low"}`);
  write(words, fill >= FULL ? "full" : fill >= 0.1 ? percent(fill) : "");
}

function updateShares(group, row, left, width, y) {
  const parts = row.idle === null ? [] : Object.keys(SHARES).map((name) => [name, row[name] ?? 0]);
  let x = left;
  const placed = parts.map(([name, share]) => {
    const at = x;
    x += share * width;
    return { name, at, wide: share * width };
  });
  keyed(group, placed, (each) => each.name, ({ name }) => svg("rect", { class: `share ${name}`, y, height: 5 }),
    (bar, { at, wide }) => {
      mark(bar, "x", at.toFixed(1));
      mark(bar, "width", Math.max(0, wide).toFixed(1));
    });
}

function updateEdge(edge, row, fastest) {
  const held = (row.fill ?? 0) >= FULL || (row.waited ?? 0) > 0.1;
  const flows = row.rate === null ? 1.6 : row.rate > 0 ? 1.4 + 3.2 * (Math.log1p(row.rate) / Math.log1p(fastest)) : 1;
  mark(edge.path, "class", `edge${edge.place.tracked ? "" : " untracked"}${held ? " held" : ""}${row.rate === 0 ? " still" : ""}`);
  mark(edge.path, "stroke-width", flows.toFixed(1));
  mark(edge.path, "marker-end", held ? "url(#head-held)" : "url(#head)");
  write(edge.number, row.waited > 0.01 ? `${rate(row.rate)} · ${percent(row.waited)}` : rate(row.rate));
  mark(edge.number, "class", held ? "rate held" : "rate");
  const queue = row.capacity ? `; ${row.queued} of ${row.capacity} places of its queues are taken` : "";
  write(edge.title, `${edge.place.id}${queue}${row.waited ? `; ${edge.place.source} waited ${percent(row.waited)} of the time` : ""}`);
}
