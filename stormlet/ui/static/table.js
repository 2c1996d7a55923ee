// Tables that can be sorted, whose rows stay while their numbers change.

import { h, keyed, mark, write } from "./dom.js";
import { COLUMNS } from "./columns.js";
import { percent } from "./format.js";
import { MOODS, SHARES } from "./moods.js";
import { address, go, linkTo, place } from "./place.js";

const TASK = { title: "Task", help: "One instance of the component, by its place from 0; the sign says how it is." };
const MOST = 200; // rows that a browser and a reader can cope with

export function table(name, title, columns, { link = true } = {}) {
  const head = h("tr", {}, columns.map((column) => heading(name, column)));
  const body = h("tbody");
  const more = h("p", { class: "note", hidden: true });
  const frame = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    h("table", {}, h("thead", {}, head), body));
  const element = h("section", { class: "card" }, h("h2", {}, title), frame, more);
  return { element, head, body, more, name, columns, link };
}

function heading(name, column) {
  const { title, help } = name === "tasks" && column === "id" ? TASK : COLUMNS[column];
  const numeric = column !== "id" && column !== "shares";
  const sort = () => {
    const [by, down] = sorting(name);
    const turned = by === column ? !down : column !== "id"; // of numbers, the largest first
    go({ sort: `${name}.${turned ? "-" : ""}${column}` }, { quietly: true });
  };
  return h("th", { scope: "col", class: numeric ? "number" : "", "data-column": column },
    h("button", { type: "button", "data-help": help, onclick: sort }, title));
}

function sorting(name) {
  const [of, column = ""] = place.sort.split(".");
  return of === name ? [column.replace("-", ""), column.startsWith("-")] : ["", false];
}

export function fill(view, rows, total = rows.length) {
  const [by, down] = sorting(view.name);
  if (by) rows = [...rows].sort((a, b) => (down ? -1 : 1) * compare(a[sortKey(by)], b[sortKey(by)]));
  for (const cell of view.head.children) {
    mark(cell, "aria-sort", cell.dataset.column === by ? (down ? "descending" : "ascending") : null);
  }
  keyed(view.body, rows.slice(0, MOST), (row) => row.id, (row) => line(view, row), (element, row) => update(view, element, row));
  view.more.hidden = rows.length <= MOST && rows.length === total;
  write(view.more, `${Math.min(rows.length, MOST)} of ${total} shown; sort or filter to see others`);
}

const sortKey = (column) => (column === "shares" ? "executing" : column);

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
}

function line(view, row) {
  return h("tr", { "data-id": row.id }, view.columns.map((column) => {
    if (column === "id") return nameCell(view, row);
    if (column === "shares") return h("td", {}, h("span", { class: "bar" }, Object.keys(SHARES).map((name) => h("i", { class: name }))));
    return h("td", { class: "number" });
  }));
}

function nameCell(view, row) {
  const sign = h("span", { class: "sign" });
  const name = view.link ? h("a", linkTo({ view: "component", component: row.id }), row.id) : row.id;
  return h("th", { scope: "row" }, sign, " ", name);
}

function update(view, element, row) {
  const mood = MOODS[row.mood] ?? MOODS.well;
  mark(element, "class", row.mood);
  view.columns.forEach((column, i) => {
    const cell = element.children[i];
    if (column === "id") {
      write(cell.firstElementChild, mood.sign);
      if (view.link) mark(cell.lastElementChild, "href", address({ view: "component", component: row.id }));
      mark(cell.firstElementChild, "data-help", `${row.id} ${mood.words}`);
    } else if (column === "shares") shares(cell.firstElementChild, row);
    else {
      write(cell, COLUMNS[column].show(row[column]));
      mark(cell, "data-help", COLUMNS[column].more?.(row));
      mark(cell, "data-alert", (column === "failed" || column === "dead_letters") && row[column] > 0);
    }
  });
}

export function shares(bar, row) {
  const known = row.idle !== null && row.idle !== undefined;
  bar.classList.toggle("unknown", !known);
  if (!known) return;
  const words = Object.entries(SHARES).filter(([name]) => row[name] > 0.004).map(([name, words]) => `${percent(row[name])} ${words}`);
  mark(bar, "data-help", words.join("; "));
  mark(bar, "aria-label", words.join("; "));
  Object.keys(SHARES).forEach((name, i) => bar.children[i].style.setProperty("width", `${(row[name] ?? 0) * 100}%`));
}
