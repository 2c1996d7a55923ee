// The page: asks, and has each part draw what has changed.

import { componentPage, fillComponent } from "./component.js";
import { h } from "./dom.js";
import { failureList, fillFailures } from "./failures.js";
import { drawGraph } from "./graph.js";
import { buildHeader, buildTabs, fillHeader, fillNotice, fillTabs, tick } from "./header.js";
import { fillLetters, letterList } from "./letters.js";
import { fillOverview, overviewPage } from "./overview.js";
import { go, onMove, place } from "./place.js";
import { fillSettings, settingList } from "./settings.js";
import { onChange, refresh, rows, store } from "./store.js";
import { fillSentence, fillTiles } from "./tiles.js";
import { fillTrees, treeList } from "./trees.js";

const [notice, sentence, main, graph, charts] = ["notice", "sentence", "main", "graph", "charts"].map((id) => document.getElementById(id));
const header = buildHeader(document.getElementById("header"));
const tabs = buildTabs(document.getElementById("tabs"));
let shown = { key: "", fill() {} };

const VIEWS = {
  overview() {
    const view = overviewPage();
    return [view.element, ({ components }) => fillOverview(view, [...components.values()])];
  },
  component({ components }) {
    const row = components.get(place.component);
    if (!row) return [h("p", { class: "note" }, `There is no component ${place.component}.`), () => {}];
    const view = componentPage(place.component, row);
    return [view.element, ({ components, subscriptions, tasks }) => fillComponent(view, components.get(view.id), tasks, store.values, subscriptions)];
  },
  errors() {
    const view = failureList("Errors of all components", { named: true });
    return [view.element, () => fillFailures(view, store.values.get("failures") ?? [], { total: store.values.get("about")?.failures })];
  },
  trees() {
    const view = treeList();
    return [view.element, () => fillTrees(view, store.values.get("trees") ?? { trees: [], note: "" })];
  },
  letters() {
    const view = letterList();
    return [view.element, () => fillLetters(view, store.values.get("letters") ?? { total: 0, letters: [] }, store.values.get("about"))];
  },
  settings() {
    const view = settingList();
    return [view.element, () => fillSettings(view, store.values.get("settings") ?? [])];
  },
};

// Subscriptions with their ends, which the picture knows; without one, the numbers alone.
function withEnds(edges) {
  const places = new Map((store.graph?.edges ?? []).map((each) => [each.id, each]));
  for (const [id, row] of edges) {
    const at = places.get(id);
    Object.assign(row, { producer: at?.source, consumer: at?.target, label: at?.label ?? "" });
  }
  return edges;
}

function draw() {
  fillHeader(header);
  fillTabs(tabs);
  fillNotice(notice);
  if (!store.values.size) return clear();
  const data = { components: rows("c/"), subscriptions: withEnds(rows("e/")), tasks: [...rows("t/").values()] };
  fillSentence(sentence, store.values);
  graph.hidden = charts.hidden = !["overview", "component"].includes(place.view);
  fillTiles(charts, store.values, data.components, place.view === "component" ? place.component : "");
  drawGraph(graph, store.graph, data.components, data.subscriptions);
  const key = `${place.topology} ${place.view} ${place.component}`;
  if (shown.key !== key) {
    const [element, fill] = (VIEWS[place.view] ?? VIEWS.overview)(data);
    main.replaceChildren(element);
    shown = { key, fill };
  }
  shown.fill(data);
}

function clear() {
  sentence.hidden = graph.hidden = charts.hidden = true;
  main.replaceChildren();
  shown = { key: "", fill() {} };
}

onChange((changed) => changed.size && draw());
onMove((changes) => {
  if (store.values.size && store.status !== "locked") draw();
  if (["topology", "view", "component", "window"].some((each) => each in changes) || !Object.keys(changes).length) refresh();
});
setInterval(() => tick(header), 1000);

addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("filter")?.focus();
  } else if (event.key === "Escape") go({ view: "overview", component: "" });
});

refresh();
