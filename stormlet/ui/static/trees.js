// Messages that are pending: in words, and as a timeline whose rows are attempts and tuples.

import { h, keyed, svg, write } from "./dom.js";
import { time } from "./format.js";

const WIDTH = 640;
const ROW = 20;

export function treeList() {
  const list = h("div", { class: "trees" });
  const note = h("p", { class: "note" });
  const element = h("section", { class: "card" },
    h("h2", {}, "Pending for longest"),
    h("p", { class: "note" }, "Messages whose trees are open, those first that time out first. With record_edges=1 it is known how long each tuple has been where it is."),
    note, list);
  return { element, list, note };
}

export function fillTrees(view, { trees, note }) {
  write(view.note, note || (trees.length ? "" : "No message is pending."));
  view.note.hidden = !view.note.textContent;
  keyed(view.list, trees, (each) => `${each.root} ${each.spout} ${each.message_id}`, make, update);
}

function make(tree) {
  return h("details", { class: "tree", "data-root": tree.root },
    h("summary", {}, h("b", {}), h("span", { class: "state" }), h("span", { class: "age" })),
    h("pre", { class: "words", tabindex: 0 }), h("div", { class: "timeline" }));
}

function update(element, tree) {
  const [name, state, age] = element.firstElementChild.children;
  write(name, `${tree.spout || "tree"} ${tree.message_id || tree.root}`);
  write(state, `${tree.state}${tree.attempts.length > 1 ? `, attempt ${tree.attempts.at(-1).number}` : ""}`);
  write(age, tree.seconds === null ? "" : time(tree.seconds));
  write(element.querySelector("pre"), tree.text);
  element.querySelector(".timeline").replaceChildren(...timeline(tree));
}

// One scale for all rows: attempts stand one after the other, tuples where they were delivered.
function timeline(tree) {
  const lengths = tree.attempts.map((each) => each.seconds ?? 0);
  const all = lengths.reduce((sum, each) => sum + each, 0);
  if (!all) return [];
  const rows = [];
  let began = 0;
  tree.attempts.forEach((attempt, i) => {
    const ended = began + lengths[i];
    rows.push({ label: `attempt ${attempt.number}`, from: began, to: ended, look: attempt.failure ? "failed" : "open", help: attempt.failure || "is running" });
    for (const each of attempt.spans) {
      const from = each.seconds === null ? began : Math.max(began, ended - each.seconds);
      rows.push({ label: each.task, from, to: ended, look: each.place.replace(" ", "-"), help: [each.place, each.path && `by way of ${each.path}`, each.value, each.doing].filter(Boolean).join("; ") });
    }
    began = ended;
  });
  const x = (seconds) => 150 + (seconds / all) * (WIDTH - 220);
  const bars = rows.flatMap(({ label, from, to, look, help }, i) => [
    svg("text", { x: 144, y: i * ROW + 14, class: look === "open" || look === "failed" ? "attempt" : "task" }, label.length > 22 ? `${label.slice(0, 21)}…` : label),
    svg("rect", { x: x(from), y: i * ROW + 4, width: Math.max(2, x(to) - x(from)), height: ROW - 8, rx: 2, class: `span ${look}` }, svg("title", {}, help)),
    svg("text", { x: x(to) + 5, y: i * ROW + 14, class: "length" }, time(to - from)),
  ]);
  return [svg("svg", { viewBox: `0 0 ${WIDTH} ${rows.length * ROW + 4}`, width: WIDTH, class: "spans", role: "img", "aria-label": "attempts and tuples over time" }, ...bars)];
}
