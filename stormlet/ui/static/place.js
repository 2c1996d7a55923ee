// The state of the view is in the address, so that a link restores it. The token is not: it goes from the fragment into
// this tab's memory, and what is copied from the address bar does not have it.

const KEY = `stormlet token ${location.pathname}`;
const DEFAULTS = { topology: "", view: "overview", component: "", window: "10m", sort: "", filter: "", sys: "" };
const CHOICES = {
  view: ["overview", "component", "errors", "trees", "letters", "settings"],
  window: ["1m", "10m", "1h", "all"],
};

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", location.pathname + location.search);
}

export function token() {
  return sessionStorage.getItem(KEY);
}

export function setToken(text) {
  sessionStorage.setItem(KEY, text);
}

export const place = { ...DEFAULTS };
let first = ""; // the topology of an address that has none
const listeners = [];

function read() {
  const query = new URLSearchParams(location.search);
  for (const name of Object.keys(DEFAULTS)) {
    const given = query.get(name) ?? DEFAULTS[name];
    place[name] = CHOICES[name] && !CHOICES[name].includes(given) ? DEFAULTS[name] : given;
  }
  place.topology ||= first;
}

export function begin(topology) {
  place.topology = first = topology;
}

export function address(changes) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...place, ...changes })) {
    if (value !== DEFAULTS[name]) query.set(name, value);
  }
  const text = query.toString();
  return text ? `?${text}` : location.pathname;
}

export function go(changes, { quietly = false } = {}) {
  const next = address(changes);
  if (quietly) history.replaceState(null, "", next);
  else history.pushState(null, "", next);
  read();
  listeners.forEach((listener) => listener(changes));
}

export function onMove(listener) {
  listeners.push(listener);
}

addEventListener("popstate", () => {
  read();
  listeners.forEach((listener) => listener({}));
});

// Links that lead to another state of this page stay in it.
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-go]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(Object.fromEntries(new URLSearchParams(link.dataset.go)));
});

export function linkTo(changes) {
  return { href: address(changes), "data-go": new URLSearchParams(changes).toString() };
}

read();
