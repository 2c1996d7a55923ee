// The sentence that names the bottleneck, and the lines that say how it has been.

import { h, keyed } from "./dom.js";
import { chart, plot } from "./charts.js";
import { count, rate, time } from "./format.js";
import { go } from "./place.js";

const TILES = {
  throughput: { title: "Acked", help: "Messages whose trees are done, in a second.", show: rate },
  latency: { title: "Complete latency", help: "The mean time from the emit of a message to its ack.", show: time },
  pending: { title: "Pending", help: "Messages without an outcome.", show: count },
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

// Without what the server has kept, the lines begin when the page was opened.
const seen = { throughput: [], latency: [], pending: [] };
const MOST = 3600;

export function fillTiles(element, values, components) {
  const spouts = [...components.values()].filter((row) => row.kind === "spout");
  const series = values.get("series");
  const now = current(values, spouts);
  for (const name of Object.keys(TILES)) {
    seen[name].push([Date.now(), now[name]]);
    seen[name].splice(0, seen[name].length - MOST);
  }
  keyed(element, Object.keys(TILES), String, (name) => {
    const view = chart(TILES[name].title, TILES[name].help);
    view.element.view = view;
    return view.element;
  }, (figure, name) => plot(figure.view, series?.[name] ?? seen[name], TILES[name].show, now[name]));
}

function current(values, spouts) {
  const known = spouts.map((row) => row.complete_mean).filter((each) => each !== null);
  return {
    throughput: spouts.reduce((sum, row) => sum + (row.acked_rate ?? row.rate), 0),
    latency: known.length ? Math.max(...known) : null,
    pending: values.get("about")?.pending ?? null,
  };
}
