// The page of a component: its numbers, tasks, inputs and streams, errors and connections.

import { h, keyed, write } from "./dom.js";
import { BOLT, COLUMNS, SPOUT } from "./columns.js";
import { failureList, fillFailures } from "./failures.js";
import { NONE, count, duration, percent, rate, time } from "./format.js";
import { MOODS, SHARES } from "./moods.js";
import { linkTo } from "./place.js";
import { fill, shares, table } from "./table.js";

const LATENCIES = { execute: "Execute", process: "Process: to the ack", complete: "Complete: emit to ack" };
const PERCENTILES = ["mean", "p50", "p90", "p99", "max"];

export function componentPage(id, row) {
  const kind = row.kind;
  const columns = (kind === "spout" ? SPOUT : BOLT).filter((each) => each !== "tasks" && each !== "lag");
  const view = {
    id,
    title: h("h1"),
    mood: h("p", { class: "mood" }),
    back: h("a", { class: "back", ...linkTo({ view: "overview", component: "" }) }, "← all components"),
    facts: h("dl", { class: "facts" }),
    bar: h("div", { class: "bar large" }, Object.keys(SHARES).map((name) => h("i", { class: name }))),
    legend: h("ul", { class: "legend" }),
    latencies: h("tbody"),
    wires: h("div", { class: "wires" }),
    tasks: table("tasks", "Tasks", columns, { link: false }),
    failures: failureList("Errors"),
    connections: h("tbody"),
  };
  const times = h("section", { class: "card" }, h("h2", {}, "Latencies"), h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, h("th"),
    PERCENTILES.map((each) => h("th", { scope: "col", class: "number" }, each)))), view.latencies)));
  view.lines = h("section", { class: "card", hidden: true }, h("h2", {}, "Connections"), h("div", { class: "scroll" }, h("table", {}, h("thead", {},
    h("tr", {}, ["Task", "Broker", "State", "For", "Lag", "Received", "Settled", "Error"].map((each) => h("th", { scope: "col" }, each)))), view.connections)));
  const heading = h("section", { class: "card heading" }, view.back, view.title, view.mood, view.facts, view.bar, view.legend);
  const flow = h("section", { class: "card" }, h("h2", {}, "Inputs and streams"), view.wires);
  view.element = h("div", { class: "component" }, heading, h("div", { class: "pair" }, times, flow), view.tasks.element, view.failures.element, view.lines);
  return view;
}

export function fillComponent(view, row, tasks, values, edges) {
  const facts = values.get("facts");
  write(view.title, view.id);
  write(view.mood, `${MOODS[row.mood]?.sign ?? ""} ${MOODS[row.mood]?.words ?? ""}`);
  view.mood.className = `mood ${row.mood}`;
  const numbers = [["rate", row.rate], ["tasks", row.tasks], [row.kind === "spout" ? "emitted" : "executed", row.kind === "spout" ? row.emitted : row.executed],
    ["acked", row.acked], ["failed", row.failed], ["pending", row.pending], ["restarts", row.restarts], ...(row.kind === "bolt" ? [["fill", row.fill], ["capacity", row.capacity]] : [])];
  keyed(view.facts, numbers, ([name]) => name,
    ([name]) => h("div", {}, h("dt", { tabindex: 0, "data-help": COLUMNS[name].help }, COLUMNS[name].title), h("dd")),
    (element, [name, value]) => write(element.lastElementChild, COLUMNS[name].show(value)));
  shares(view.bar, row);
  view.bar.hidden = view.legend.hidden = row.idle === null;
  keyed(view.legend, Object.entries(SHARES), ([name]) => name, ([name, words]) => h("li", { "data-help": words, tabindex: 0 }, h("i", { class: name }), h("span")),
    (element, [name]) => write(element.lastElementChild, `${name} ${percent(row[name])}`));
  fillLatencies(view, row);
  if (facts) fillWires(view, facts, edges);
  fill(view.tasks, tasks);
  fillFailures(view.failures, values.get("failures") ?? [], { none: "No errors of its own." });
  fillConnections(view, values.get("connections") ?? {});
}

function fillLatencies(view, row) {
  const kinds = row.kind === "spout" ? ["complete"] : ["execute", "process"];
  keyed(view.latencies, kinds, String, (kind) => h("tr", {}, h("th", { scope: "row" }, LATENCIES[kind]), PERCENTILES.map(() => h("td", { class: "number" }))),
    (element, kind) => PERCENTILES.forEach((each, i) => write(element.children[i + 1], time(row[`${kind}_${each}`]))));
}

function fillWires(view, facts, edges) {
  const into = [...edges].filter(([, each]) => each.consumer === view.id).map(([id, each]) => ({ id, words: "from", name: each.producer, ...each }));
  const out = [...edges].filter(([, each]) => each.producer === view.id).map(([id, each]) => ({ id, words: "to", name: each.consumer, ...each }));
  keyed(view.wires, [...into, ...out], (each) => `${each.words} ${each.id}`,
    (each) => h("p", { class: "wire" }, h("span", { class: "direction" }, each.words), h("a", linkTo({ view: "component", component: each.name }), each.name), h("span", { class: "grouping" }, each.label), h("span", { class: "number" })),
    (element, each) => write(element.lastElementChild, [rate(each.rate), each.fill === null ? "" : `queue ${percent(each.fill)}`, each.waited > 0.005 ? `waited ${percent(each.waited)}` : ""].filter((text) => text && text !== NONE).join(", ")));
}

// Unknown while the broker is not reached, and where it does not say.
function lagOf({ state, lag }) {
  const known = Object.values(lag);
  return known.length && state !== "reconnecting" ? known.reduce((sum, each) => sum + each, 0) : null;
}

function fillConnections(view, connections) {
  const rows = Object.entries(connections);
  view.lines.hidden = !rows.length;
  keyed(view.connections, rows, ([task]) => task, ([task, each]) => h("tr", {}, h("th", { scope: "row" }, task), [each.address, "", "", "", "", "", ""].map((text) => h("td", {}, text))),
    (element, [, each]) => [each.state, duration(each.since), count(lagOf(each)), count(each.received), count(each.settled), each.error]
      .forEach((text, i) => write(element.children[i + 2], text)));
}
