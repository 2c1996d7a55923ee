// Messages that are pending: in words, and as a timeline whose rows are attempts.

import { h, keyed, mark, write } from "./dom.js";
import { time } from "./format.js";
import { fillTimeline, STATES, timelineOf } from "./timeline.js";

export function treeList() {
  const list = h("div", { class: "trees" });
  const note = h("p", { class: "note" });
  const element = h("section", { class: "card" },
    h("h2", {}, "Pending for longest"),
    h("p", { class: "note" }, "Messages whose trees are open, those first that time out first. With record_edges=1 it is known what was executed when."),
    note, list);
  return { element, list, note };
}

export function fillTrees(view, { trees, note }) {
  write(view.note, note || (trees.length ? "" : "No message is pending."));
  view.note.hidden = !view.note.textContent;
  // By its message id, where it has one: each attempt has another root, and what is opened stays open.
  const count = new Map();
  const named = trees.map((tree) => {
    const name = tree.message_id ? `${tree.spout} ${tree.message_id}` : tree.root;
    count.set(name, (count.get(name) ?? 0) + 1);
    return { tree, key: `${name} ${count.get(name)}` };
  });
  keyed(view.list, named, ({ key }) => key, make, (element, { tree }) => update(element, tree));
}

function make() {
  const element = h("details", { class: "tree" },
    h("summary", {}, h("b", {}), h("span", { class: "state" }), h("span", { class: "age" })),
    h("pre", { class: "words", tabindex: 0 }), timelineOf(), legend());
  element.addEventListener("toggle", () => fillTimeline(element.querySelector(".timeline"), element.attempts)); // its width is known now
  return element;
}

function update(element, tree) {
  mark(element, "data-root", tree.root);
  const [name, state, age] = element.firstElementChild.children;
  write(name, `${tree.spout || "tree"} ${tree.message_id || tree.root}`);
  write(state, `${tree.state}${tree.attempts.length > 1 ? `, attempt ${tree.attempts.at(-1).number}` : ""}`);
  write(age, tree.seconds === null ? "" : time(tree.seconds));
  write(element.querySelector("pre"), tree.text);
  element.attempts = tree.attempts;
  const timeline = element.querySelector(".timeline");
  fillTimeline(timeline, tree.attempts);
  element.querySelector(".legend").hidden = timeline.hidden;
}

function legend() {
  return h("p", { class: "legend", hidden: true }, Object.entries(STATES).map(([state, { sign, words }]) => h("span", { "data-state": state }, `${sign} ${words}`)),
    h("span", {}, "╌ waited before"));
}
