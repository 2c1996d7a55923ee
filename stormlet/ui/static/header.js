// The head of the page: which topology, how it is, how fresh this is; and the choice of window and view.

import { h, keyed, mark, write } from "./dom.js";
import { clock, count, counted, duration, zone } from "./format.js";
import { go, linkTo, place, setToken, token } from "./place.js";
import { ask, refresh, store } from "./store.js";

const WINDOWS = { "1m": "1 min", "10m": "10 min", "1h": "1 h", all: "all" };
const STATES = { running: "●", inactive: "◌", starting: "◔", draining: "◑", stopped: "■", crashed: "✕" };
const TABS = { overview: "Components", errors: "Errors", trees: "Pending", letters: "Dead letters", settings: "Configuration" };

export function buildHeader(header) {
  const view = {
    name: h("select", { "aria-label": "Topology", onchange: (event) => go({ topology: event.target.value, view: "overview", component: "" }) }),
    single: h("span", { class: "name" }),
    state: h("span", { class: "state" }),
    since: h("span", { class: "since", tabindex: 0 }),
    fresh: h("span", { class: "fresh" }),
    windows: h("div", { class: "windows", role: "group", "aria-label": "Window" }),
    actions: h("div", { class: "actions" }),
  };
  header.append(h("span", { class: "brand" }, h("span", { class: "drop", "aria-hidden": "true" }), "stormlet"), view.name, view.single, view.state, view.since,
    h("span", { class: "space" }), view.fresh, view.actions, view.windows);
  keyed(view.windows, Object.keys(WINDOWS), String, (window) => h("button", { type: "button", "data-window": window, "data-help": window === "all" ? "Since the start" : `The last ${WINDOWS[window]}`,
    onclick: () => go({ window }) }, WINDOWS[window]));
  view.actions.append(
    ...["activate", "deactivate", "drain"].map((each) => h("button", { type: "button", class: "control", "data-operation": each, onclick: () => operate(each) }, each)),
    h("button", { type: "button", "data-help": "Save all that this page shows; stormlet view FILE opens it again.", onclick: save }, "snapshot"));
  return view;
}

export function fillHeader(view) {
  const about = store.values.get("about");
  const choice = choices();
  keyed(view.name, choice, (each) => each.id, (each) => h("option", { value: each.id }), (element, each) => write(element, each.words));
  view.name.hidden = choice.length < 2;
  view.single.hidden = !view.name.hidden;
  view.name.value = place.topology;
  write(view.single, about?.name ?? "");
  document.title = about ? `${about.name} – stormlet` : "stormlet";
  mark(view.state, "class", `state ${about?.state ?? ""}`);
  write(view.state, about ? `${STATES[about.state] ?? ""} ${about.state}` : "");
  for (const button of view.windows.children) mark(button, "aria-pressed", String(button.dataset.window === place.window));
  for (const button of view.actions.querySelectorAll(".control")) {
    const [inactive, running] = [about?.state === "inactive", about?.state === "running"];
    button.hidden = !about?.changes || !{ activate: inactive, deactivate: running, drain: inactive || running }[button.dataset.operation];
  }
  tick(view);
}

function isThere() {
  return store.topologies.some((each) => each.id === place.topology);
}

function choices() {
  const names = store.topologies.map((each) => each.name);
  const isAlone = (name) => names.indexOf(name) === names.lastIndexOf(name);
  const all = store.topologies.map(({ id, name }) => ({ id, words: isAlone(name) ? name : id }));
  return place.topology && !isThere() ? [{ id: place.topology, words: `${place.topology} (gone)` }, ...all] : all;
}

// Once a second, whether something has changed or not.
export function tick(view) {
  const about = store.values.get("about");
  const taken = store.values.get("taken");
  const end = taken ? Date.parse(taken) : store.status === "live" ? Date.now() : (store.heard ?? Date.now());
  write(view.since, about ? `for ${duration((end - Date.parse(about.began)) / 1000)}` : "");
  if (about) mark(view.since, "data-help", `since ${clock(about.began)} (${zone}); ${about.counts}`);
  mark(view.fresh, "class", `fresh ${store.status}`);
  const words = { live: "live", recorded: taken ? `snapshot of ${clock(taken)}` : "recorded", waiting: "asks", locked: "locked", gone: "gone", lost: "no answer" };
  write(view.fresh, words[store.status]);
}

export function buildTabs(nav) {
  const view = { nav };
  fillTabs(view);
  return view;
}

export function fillTabs({ nav }) {
  const about = store.values.get("about");
  const numbers = { errors: about?.failures, trees: about?.pending, letters: about?.dead_letters };
  keyed(nav, Object.keys(TABS), String, (tab) => h("a", { "data-tab": tab }, TABS[tab], h("b")), (element, tab) => {
    const link = linkTo({ view: tab, component: "" });
    mark(element, "href", link.href);
    mark(element, "data-go", link["data-go"]);
    mark(element, "aria-current", place.view === tab || (tab === "overview" && place.view === "component") ? "page" : null);
    write(element.lastElementChild, numbers[tab] ? count(numbers[tab]) : "");
  });
}

export function fillNotice(notice) {
  const about = store.values.get("about");
  const last = store.heard ? ` This is the last picture, of ${clock(store.heard)}.` : "";
  const words = {
    gone: `${isThere() ? "" : "The topology is gone: "}${store.reason}.${last}`,
    lost: `No answer from the server${store.reason ? `: ${store.reason}` : ""}; asked again every 2 seconds.${last}`,
    locked: token() ? "The token is wrong." : "This page needs its token.",
  }[store.status] ?? ended(about);
  if (notice.dataset.words === words) return;
  notice.dataset.words = words;
  notice.replaceChildren(words);
  mark(notice, "class", store.status === "live" ? about?.state ?? "" : store.status);
  if (store.status !== "locked") return;
  const form = tokenForm(notice);
  notice.append(form);
  if (document.activeElement === document.body) form.elements[0].focus(); // unless the reader types elsewhere
}

function ended(about) {
  if (about?.crash) return `Crashed: ${about.crash}`;
  if (about?.state === "stopped") return `The topology has ended.${about.left_over ? ` ${counted(about.left_over, "message was", "messages were")} left over.` : ""}`;
  if (about?.state === "draining") return "It drains: no new messages, what is under way is finished.";
  if (about?.state === "inactive") return "It is not active: spouts are not asked for tuples.";
  return "";
}

function tokenForm(notice) {
  const field = h("input", { type: "password", autocomplete: "off", "aria-label": "Token" });
  return h("form", { onsubmit: (event) => {
    event.preventDefault();
    setToken(field.value.trim());
    // So the answer is seen even if it says the same as the last one.
    notice.dataset.words = "Asking.";
    notice.replaceChildren("Asking.");
    refresh();
  } }, field, h("button", {}, "Open"));
}

async function operate(operation) {
  if (operation === "drain" && !confirm("End this topology? What is under way is finished; then it is over.")) return;
  try {
    await ask(`topology/${encodeURIComponent(place.topology)}/${operation}`, { method: "POST" });
  } catch (error) {
    alert(error.message);
  }
  refresh();
}

async function save() {
  const blob = await (await ask("snapshot.json")).blob();
  const link = h("a", { href: URL.createObjectURL(blob), download: `${place.topology}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.json` });
  link.click();
  URL.revokeObjectURL(link.href);
}
