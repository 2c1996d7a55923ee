// The sentence that names the bottleneck, and the lines that say how it has been.

import { h, keyed } from "./dom.js";
import { chart, entitle, plot } from "./charts.js";
import { count, rate, time } from "./format.js";
import { go } from "./place.js";

// As long as the server has kept little, the lines begin when the page was opened.
const seen = { throughput: [], latency: [], pending: [] };
const MOST = 120;
let seenOf = "";

const SHOWS = { throughput: rate, latency: time, pending: count };
const COMPLETE = ["Complete latency", "The median time from the emit of a message to its ack, of samples: each task measures one message at a time."];
const EXECUTE = ["Execute latency", "The median time of one execute."];
const TITLES = {
  topology: { throughput: ["Acked", "Messages whose trees are done, in a second."], latency: COMPLETE, pending: ["Pending", "Messages without an outcome, now."] },
  spout: { throughput: ["Emitted", "Emits in a second."], latency: COMPLETE, pending: ["Pending", "Messages without an outcome, now."] },
  bolt: { throughput: ["Executed", "Inputs in a second."], latency: EXECUTE, pending: ["Pending", "Inputs that are queued, in hand or held, now."] },
  acker: { throughput: ["Executed", "Control messages in a second."], latency: EXECUTE, pending: ["Open trees", "Trees without an outcome, now."] },
};

export function fillSentence(element, values) {
  const about = values.get("about");
  const words = about?.sentence ?? "";
  element.hidden = !words;
  if (element.dataset.words === words) return;
  element.dataset.words = words;
  element.replaceChildren(h("span", { class: "sign", "aria-hidden": "true" }, "▲"), h("p", {}, words));
  if (about.bottleneck) element.append(h("button", { type: "button", onclick: () => go({ view: "component", component: about.bottleneck }) }, `open ${about.bottleneck}`));
}


export function fillTiles(element, values, components, component) {
  const row = components.get(component);
  const series = values.get("series");
  const now = row ? ofComponent(row) : ofTopology(values, [...components.values()]);
  remember(component, now);
  keyed(element, Object.keys(SHOWS), String, (name) => {
    const view = chart(name);
    view.element.view = view;
    return view.element;
  }, (figure, name) => {
    const [title, help] = TITLES[row?.kind ?? "topology"][name];
    entitle(figure.view, title, help);
    const kept = (series?.at ?? []).map((at, i) => [at, series[name][i]]);
    plot(figure.view, kept.length > 4 || values.get("taken") ? kept : seen[name], SHOWS[name], now[name]);
  });
}

function remember(component, now) {
  if (component !== seenOf) for (const each of Object.values(seen)) each.length = 0;
  seenOf = component;
  for (const name of Object.keys(SHOWS)) {
    seen[name].push([Date.now(), now[name]]);
    seen[name].splice(0, seen[name].length - MOST);
  }
}

function ofComponent(row) {
  const latency = row.kind === "spout" ? row.complete_p50 : row.execute_p50;
  return { throughput: row.rate, latency, pending: row.pending };
}

function ofTopology(values, rows) {
  const spouts = rows.filter((row) => row.kind === "spout");
  const known = spouts.map((row) => row.complete_p50).filter((each) => each !== null);
  return {
    throughput: spouts.reduce((sum, row) => sum + row.acked_rate, 0),
    latency: known.length ? Math.max(...known) : null,
    pending: values.get("about")?.pending ?? null,
  };
}
