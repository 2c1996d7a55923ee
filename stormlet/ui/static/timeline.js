// The attempts at a message as rows, what was executed in each as bars, all on one scale.

import { h, keyed, mark, write } from "./dom.js";
import { counted, time } from "./format.js";

const LETTER = 6.8; // pixels, as are the next ones
const GAP = 6;
const LANE = 24;

// A sign beside each colour, so that no reader depends on one of them.
export const STATES = {
  acked: { sign: "✓", words: "acked" },
  failed: { sign: "✕", words: "failed" },
  running: { sign: "▶", words: "is executed" },
  held: { sign: "◧", words: "is held by the bolt" },
  queued: { sign: "…", words: "waits in a queue" },
};
const LOST = { sign: "?", words: "is no longer there" };

export function timelineOf() {
  const element = h("div", { class: "timeline", role: "group", "aria-label": "timeline of the attempts" });
  element.addEventListener("keydown", (event) => step(event, element));
  element.addEventListener("focusin", (event) => enter(event.target, element));
  return element;
}

export function fillTimeline(element, attempts) {
  const known = attempts.filter(({ began, seconds }) => began !== null && began !== undefined && seconds !== null);
  element.hidden = !known.length;
  if (!known.length) return;
  const all = Math.max(...known.map(({ began, seconds }) => began + seconds), 1e-6);
  const scale = { all, width: Math.max(200, element.clientWidth || element.parentElement?.clientWidth || 640) };
  keyed(element, [null, ...known], (attempt) => attempt?.number ?? "scale", (attempt) => (attempt ? makeRow() : makeScale()),
    (row, attempt) => (attempt ? fillRow(row, attempt, scale) : fillScale(row, all)));
  if (!element.querySelector('.bar[tabindex="0"]')) element.querySelector(".bar")?.setAttribute("tabindex", 0);
}

function makeScale() {
  return h("div", { class: "scale", "aria-hidden": true }, [0, 25, 50, 75, 100].map((part) => h("span", { "data-part": part })));
}

function fillScale(row, all) {
  for (const tick of row.children) write(tick, time((all * tick.dataset.part) / 100));
}

function makeRow() {
  return h("section", { class: "attempt" }, h("p", {}, h("b"), h("span", { class: "fate" })), h("div", { class: "lanes" }, h("i", { class: "whole" })), h("p", { class: "left-out" }));
}

function fillRow(row, attempt, scale) {
  const [title, lanes, leftOut] = row.children;
  mark(row, "data-fate", attempt.failure ? "failed" : "open");
  write(title.firstElementChild, `attempt ${attempt.number}`);
  write(title.lastElementChild, attempt.failure ? `✕ after ${time(attempt.seconds)}: ${attempt.failure}` : `▶ for ${time(attempt.seconds)}`);
  write(leftOut, attempt.left_out ? `${counted(attempt.left_out, "more execution is", "more executions are")} not shown` : "");
  leftOut.hidden = !attempt.left_out;
  const ends = attempt.began + attempt.seconds;
  place(lanes.firstElementChild, attempt.began, ends, scale);
  const bars = packed(attempt.spans.map((span) => measured(span, ends, scale)), scale);
  lanes.style.height = `${Math.max(1, ...bars.map(({ lane }) => lane + 1)) * LANE}px`;
  // Of several spans of one task some are alike in all but their number.
  const count = new Map();
  for (const bar of bars) {
    const name = `${bar.span.task} ${bar.span.delivered}`;
    count.set(name, (count.get(name) ?? 0) + 1);
    bar.key = `${name} ${count.get(name)}`;
  }
  const holder = (lanes.holder ??= lanes.appendChild(h("div", { role: "list" })));
  keyed(holder, bars, ({ key }) => key, makeBar, (element, bar) => fillBar(element, bar, ends, scale));
}

function makeBar() {
  return h("div", { class: "span", role: "listitem" }, h("i", { class: "wait" }), h("button", { type: "button", class: "bar", tabindex: -1 }, h("span")));
}

function fillBar(element, { span, lane, side }, ends, scale) {
  const [wait, bar] = element.children;
  const { sign } = STATES[span.state] ?? LOST;
  element.style.top = `${lane * LANE}px`;
  mark(element, "data-state", STATES[span.state] ? span.state : "lost");
  mark(element, "data-open", span.state === "held" || (span.began !== null && span.ended === null));
  mark(bar, "data-name", side);
  write(bar.firstElementChild, `${sign} ${span.task}`);
  mark(bar, "data-help", figures(span, ends));
  mark(bar, "aria-label", figures(span, ends));
  place(wait, span.delivered, span.began ?? span.delivered, scale);
  wait.hidden = span.began === null || span.began <= span.delivered;
  place(bar, ...extent(span, ends), scale);
}

function figures(span, ends) {
  const { words } = STATES[span.state] ?? LOST;
  if (span.began === null) return `${span.task} ${words} since ${time(ends - span.delivered)}${span.more ? `; ${span.more}` : ""}`;
  const taken = (span.ended ?? ends) - span.began;
  const parts = [`${span.task}: ${words}`, `began at ${time(span.began)}`, `waited for ${time(span.began - span.delivered)}`];
  if (span.state === "held") parts.push(`has held it for ${time(ends - span.began)} so far`);
  else parts.push(span.ended === null ? `has taken ${time(taken)} so far` : `took ${time(taken)}`);
  return parts.join("; ");
}

function extent(span, ends) {
  if (span.began === null) return [span.delivered, ends];
  return [span.began, span.state === "held" ? ends : (span.ended ?? ends)];
}

function place(element, from, to, { all }) {
  element.style.left = `${(100 * from) / all}%`;
  element.style.width = `${(100 * Math.max(0, to - from)) / all}%`;
}

// Where a span stands with its name, in pixels: the name is on the bar, or else beside it where there is room.
function measured(span, ends, { all, width }) {
  const [from, to] = extent(span, ends).map((each) => (each / all) * width);
  const name = (span.task.length + 3) * LETTER + GAP;
  const side = to - from >= name ? "on" : to + name <= width ? "after" : "before";
  const first = Math.min((span.delivered / all) * width, side === "before" ? from - name : from);
  return { span, side, first, last: Math.max(to, from + 4) + (side === "after" ? name : 0) };
}

// Each in the first lane that is free where it stands.
function packed(bars) {
  const lanes = [];
  return bars.map((bar) => {
    let lane = lanes.findIndex((last) => last + GAP <= bar.first);
    if (lane < 0) lane = lanes.length;
    lanes[lane] = bar.last;
    return { ...bar, lane };
  });
}

// One stop of the tabulator for all bars of a message; arrows lead from one to the next.
function step(event, element) {
  const bars = [...element.querySelectorAll(".bar")];
  const at = bars.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: bars.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  bars[Math.max(0, Math.min(to, bars.length - 1))].focus();
}

function enter(bar, element) {
  if (!bar.matches(".bar")) return;
  for (const each of element.querySelectorAll('.bar[tabindex="0"]')) each.setAttribute("tabindex", -1);
  bar.setAttribute("tabindex", 0);
}
