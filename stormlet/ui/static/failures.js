// Errors: a line for each kind, with its count and the traceback of the first one.

import { h, keyed, write } from "./dom.js";
import { clock, count } from "./format.js";
import { linkTo } from "./place.js";

export function failureList(title, { named = false } = {}) {
  const list = h("div", { class: "failures" });
  const none = h("p", { class: "note" });
  return { element: h("section", { class: "card" }, h("h2", {}, title), none, list), list, none, named };
}

export function fillFailures(view, failures, { total = failures.length, none = "Nothing has failed." } = {}) {
  const more = failures.length < total ? `The last ${failures.length} of ${total} kinds are here.` : "";
  write(view.none, failures.length ? more : none);
  view.none.hidden = !view.none.textContent;
  keyed(view.list, failures, (each) => [each.component, each.what, each.kind, each.place].join("\n"), (each) => make(view, each), update);
}

function make(view, failure) {
  const element = h("details", { class: "failure" },
    h("summary", {}, h("b", { class: "count" }), h("span", { class: "what" }), h("span", { class: "error" }), h("time")),
    view.named ? h("p", {}, "in ", h("a", linkTo({ view: "component", component: failure.component }), failure.component)) : null,
    h("p", { class: "value" }),
    failure.traceback ? h("pre", { tabindex: 0 }, failure.traceback) : h("p", { class: "note" }, "Nothing was raised, so there is no traceback."));
  return element;
}

function update(element, failure) {
  const [number, what, error, when] = element.firstElementChild.children;
  write(number, `${count(failure.count)}×`);
  write(what, `${failure.what} of ${failure.task}${failure.place ? `, ${failure.place}` : ""}`);
  write(error, failure.error);
  write(when, clock(failure.last));
  write(element.querySelector(".value"), failure.value ? `last on ${failure.value}` : "");
}
