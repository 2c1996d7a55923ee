// Lines over time, small enough to be read at a glance: a point a cursor can ask, no library.

import { h, mark, svg, write } from "./dom.js";

const [WIDTH, HEIGHT] = [300, 64];

export function chart(name) {
  const title = h("span", { class: "title", tabindex: 0 });
  const now = h("strong");
  const at = h("span", { class: "at" });
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "line", fill: "none" });
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
  const top = h("span", { class: "top" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, area, line, cursor);
  const element = h("figure", { class: "chart", "data-chart": name },
    h("figcaption", {}, title, now),
    h("div", { class: "plot" }, picture, top), at);
  const view = { element, title, now, at, area, line, cursor, top, points: [], show: String };
  picture.addEventListener("pointermove", (event) => point(view, event, picture));
  picture.addEventListener("pointerleave", () => leave(view));
  return view;
}

export function entitle(view, title, help) {
  write(view.title, title);
  mark(view.title, "data-help", help);
}

// Points are [milliseconds, value]; a value that is not known makes a gap.
export function plot(view, points, show, current) {
  view.points = points;
  view.show = show;
  write(view.now, show(current));
  const known = points.filter(([, value]) => value !== null);
  mark(view.element, "data-empty", known.length < 2);
  if (known.length < 2) return leave(view);
  const [from, to] = [points[0][0], points.at(-1)[0]];
  const most = Math.max(...known.map(([, value]) => value)) || 1;
  view.x = (time) => ((time - from) / Math.max(1, to - from)) * WIDTH;
  view.y = (value) => HEIGHT - 2 - (value / most) * (HEIGHT - 8);
  const runs = pieces(points).map((piece) => piece.map(([time, value]) => `${view.x(time).toFixed(1)} ${view.y(value).toFixed(1)}`));
  mark(view.line, "d", runs.map((run) => `M${run.join("L")}`).join(""));
  mark(view.area, "d", runs.map((run) => `M${run[0].split(" ")[0]} ${HEIGHT}L${run.join("L")}L${run.at(-1).split(" ")[0]} ${HEIGHT}Z`).join(""));
  write(view.top, show(most));
  if (!view.pointed) leave(view);
}

function pieces(points) {
  const found = [[]];
  for (const each of points) {
    if (each[1] === null) found.push([]);
    else found.at(-1).push(each);
  }
  return found.filter((piece) => piece.length);
}

function point(view, event, picture) {
  if (!view.points.length || !view.x) return;
  const place = picture.getBoundingClientRect();
  const x = ((event.clientX - place.left) / place.width) * WIDTH;
  const [time, value] = view.points.reduce((best, each) => (Math.abs(view.x(each[0]) - x) < Math.abs(view.x(best[0]) - x) ? each : best));
  view.pointed = true;
  mark(view.cursor, "x1", view.x(time));
  mark(view.cursor, "x2", view.x(time));
  mark(view.cursor, "visibility", "visible");
  write(view.at, `${new Date(time).toLocaleTimeString()}  ${view.show(value)}`);
}

function leave(view) {
  view.pointed = false;
  mark(view.cursor, "visibility", "hidden");
  const first = view.points[0];
  write(view.at, first ? `since ${new Date(first[0]).toLocaleTimeString()}` : "");
}
