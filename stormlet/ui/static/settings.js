// Options, and where each value comes from.

import { h, keyed, write } from "./dom.js";
import { linkTo } from "./place.js";

export function settingList() {
  const body = h("tbody");
  const head = h("tr", {}, ["Option", "Value", "From", "For"].map((each) => h("th", { scope: "col" }, each)));
  const frame = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Configuration" }, h("table", { class: "settings" }, h("thead", {}, head), body));
  return { element: h("section", { class: "card" }, h("h2", {}, "Configuration"), frame), body };
}

export function fillSettings(view, settings) {
  keyed(view.body, settings, (each) => `${each.component}/${each.option}`, make);
}

function make({ component, option, value, origin }) {
  const whom = component ? h("a", linkTo({ view: "component", component }), component) : "the topology";
  return h("tr", { class: origin === "default" ? "default" : "" }, h("th", { scope: "row" }, option),
    h("td", {}, h("code", {}, value === null ? "none" : String(value))), h("td", {}, origin), h("td", {}, whom));
}
