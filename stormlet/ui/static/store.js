// What the server has said, and the questions that keep it fresh. An answer is finite: an open stream would hold up the
// end of the host's server.

import { begin, place, token } from "./place.js";

export const store = {
  values: new Map(),
  topologies: [],
  graph: null,
  status: "waiting", // live, lost, gone, locked, recorded
  heard: null, // when the last answer came
  reason: "",
};

const RETRY = 2;
const listeners = [];
let key = ""; // what the values are of
let valuesOf = ""; // the topology of them
let revision = "";
let timer = 0;
let asking = null;

export function onChange(listener) {
  listeners.push(listener);
}

function tell(changed) {
  listeners.forEach((listener) => listener(changed));
}

export async function ask(path, options = {}) {
  // It fits in no header: fetch would fail without asking.
  if (token() && !/^[\x21-\x7e]+$/.test(token())) throw Object.assign(new Error("the token is wrong"), { status: 401 });
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  const response = await fetch(`api/v1/${path}`, { ...options, headers, cache: "no-store" });
  if (response.ok) return response;
  const words = await response.json().catch(() => ({}));
  const error = new Error(words.errorMessage ?? response.statusText);
  error.status = response.status;
  throw error;
}

const asJson = async (path) => (await ask(path)).json();

function apply(change) {
  const changed = new Set(Object.keys(change.values));
  if (change.whole) {
    for (const name of store.values.keys()) changed.add(name);
    store.values.clear();
  }
  for (const [name, value] of Object.entries(change.values)) store.values.set(name, value);
  for (const name of change.gone) {
    store.values.delete(name);
    changed.add(name);
  }
  revision = change.revision;
  return changed;
}

// One that was chosen stays chosen, also if it is gone.
async function chooseTopology() {
  store.topologies = await asJson("pages");
  if (!place.topology && store.topologies.length) begin(store.topologies[0].id);
  if (!place.topology) throw Object.assign(new Error("no topology is running here"), { status: 404 });
}

async function poll(mine) {
  const now = JSON.stringify([place.topology, place.view, place.component, place.window]);
  const changed = new Set();
  if (!place.topology || !store.topologies.length || store.status === "gone") await chooseTopology();
  const id = encodeURIComponent(place.topology);
  // What comes again may be another one of that name.
  if (store.graph?.topology !== place.topology || !["live", "recorded"].includes(store.status)) {
    store.graph = { topology: place.topology, ...(await asJson(`pages/${id}/graph`)) };
    changed.add("graph");
  }
  if (now !== key) revision = "";
  const query = new URLSearchParams({
    since: revision, view: place.view, component: place.component, window: place.window,
  });
  const change = await asJson(`pages/${id}/changes?${query}`);
  if (mine !== asking) return null; // the reader has gone on
  key = now;
  valuesOf = place.topology;
  for (const name of apply(change)) changed.add(name);
  store.status = change.pollSeconds === null ? "recorded" : "live";
  store.heard = Date.now();
  store.reason = "";
  tell(changed);
  return change.pollSeconds;
}

function failed(error) {
  if (error.status === 401) store.status = "locked";
  else store.status = error.status === 404 ? "gone" : "lost";
  if (store.status === "gone" && valuesOf !== place.topology) forget();
  store.reason = error.status ? error.message : "";
  tell(new Set(["status"]));
  return error.status === 401 ? null : RETRY;
}

// The last picture is of another topology.
function forget() {
  store.values.clear();
  store.graph = store.heard = null;
  key = "";
}

// The next question comes a while after the last answer: a slow server is not asked twice at a time.
export async function refresh() {
  clearTimeout(timer);
  const mine = (asking = {});
  if (document.hidden) return;
  let seconds;
  try {
    seconds = await poll(mine);
  } catch (error) {
    if (error.status === 404) await chooseTopology().catch(() => {}); // there may be others now
    if (mine !== asking) return;
    seconds = failed(error);
  }
  if (mine === asking && seconds !== null) timer = setTimeout(refresh, seconds * 1000);
}

export function rows(prefix) {
  const names = store.values.get("columns")?.[prefix === "e/" ? "edges" : "components"] ?? [];
  const found = new Map();
  for (const [name, values] of store.values) {
    if (name.startsWith(prefix)) found.set(name.slice(2), Object.fromEntries(names.map((each, i) => [each, values[i]])));
  }
  return found;
}

addEventListener("visibilitychange", () => document.hidden || refresh());
