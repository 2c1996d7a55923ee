// Messages that were given up, with the cause.

import { h, keyed, write } from "./dom.js";
import { counted } from "./format.js";
import { ask, refresh } from "./store.js";
import { place } from "./place.js";

export function letterList() {
  const list = h("div", { class: "letters" });
  const total = h("p", { class: "note" });
  return { element: h("section", { class: "card" }, h("h2", {}, "Dead letters"), total, list), list, total };
}

export function fillLetters(view, { total, letters }, about) {
  write(view.total, total ? `${counted(total, "message was", "messages were")} given up; ${letters.length === 1 ? "the last one is" : `the last ${letters.length} are`} here${about?.values ? "" : ", without their values (--ui-show-values)"}.` : "No message was given up.");
  keyed(view.list, letters, (each) => String(each.number), (each) => make(each, about), update);
}

function make(letter, about) {
  const again = about?.changes ? h("button", { type: "button", class: "again", onclick: (event) => replay(event.target, letter.number) }, "Emit again") : null;
  return h("details", { class: "letter" },
    h("summary", {}, h("b", { class: "count" }, `#${letter.number}`), h("span", { class: "what" }, `${letter.component} ${letter.message_id}`), h("span", { class: "error" }, letter.cause), h("span", { class: "fate" })),
    letter.value === null ? null : h("p", {}, "value ", h("code", {}, letter.value)),
    letter.place ? h("p", {}, `raised in ${letter.place}`) : null,
    h("p", {}, `${counted(letter.attempts, "attempt")} on stream ${letter.stream}:`),
    h("ol", {}, letter.history.map((each) => h("li", {}, each))), again);
}

function update(element, letter) {
  write(element.querySelector(".fate"), letter.again);
  const button = element.querySelector(".again");
  if (button) button.hidden = Boolean(letter.again);
}

async function replay(button, number) {
  button.disabled = true;
  try {
    await ask(`topology/${encodeURIComponent(place.topology)}/dead-letters/${number}/replay`, { method: "POST" });
    refresh();
  } catch (error) {
    button.disabled = false;
    button.textContent = error.message;
  }
}
