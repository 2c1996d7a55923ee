// All components, as in Storm's UI.

import { h } from "./dom.js";
import { BOLT, SPOUT } from "./columns.js";
import { go, place } from "./place.js";
import { fill, table } from "./table.js";

export function overviewPage() {
  const filter = h("input", { type: "search", id: "filter", placeholder: "Filter by name  ( / )", value: place.filter, "aria-label": "Filter components by name",
    oninput: (event) => go({ filter: event.target.value }, { quietly: true }),
    onkeydown: (event) => event.key === "Enter" && place.filter && open(found(spouts, bolts)) });
  const system = h("input", { type: "checkbox", id: "system", onchange: (event) => go({ sys: event.target.checked ? "1" : "" }, { quietly: true }) });
  system.checked = place.sys === "1";
  const spouts = table("spouts", "Spouts", SPOUT);
  const bolts = table("bolts", "Bolts", BOLT);
  const tools = h("div", { class: "tools" }, filter, h("label", { "data-help": "Show __acker, the part of the engine that follows the trees of messages." }, system, " system components"));
  return { element: h("div", {}, tools, spouts.element, bolts.element), spouts, bolts, filter, system };
}

// The one of that very name, or else the first that is shown.
function found(...tables) {
  const ids = tables.flatMap((each) => [...each.body.children]).map((row) => row.dataset.id);
  return ids.includes(place.filter) ? place.filter : ids[0];
}

function open(component) {
  if (component !== undefined) go({ view: "component", component });
}

export function fillOverview(view, rows) {
  const wanted = place.filter.toLowerCase();
  const of = (kinds) => rows.filter((row) => kinds.includes(row.kind));
  const named = (all) => all.filter((row) => row.id.toLowerCase().includes(wanted));
  const spouts = of(["spout"]);
  const bolts = of(place.sys === "1" ? ["bolt", "acker"] : ["bolt"]);
  fill(view.spouts, named(spouts), spouts.length);
  fill(view.bolts, named(bolts), bolts.length);
  view.system.checked = place.sys === "1";
  if (document.activeElement !== view.filter) view.filter.value = place.filter;
}
