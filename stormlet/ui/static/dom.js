// Elements without markup: every text of others is a text node, never parsed.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function h(tag, properties, ...children) {
  return filled(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

// Writes only what differs: the browser lays out less, and a selection in the text stays.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function mark(element, name, value) {
  const text = value === null || value === undefined || value === false ? null : value === true ? "" : String(value);
  if (text === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

// One child for each item, in their order; those that were there are updated, not made again.
export function keyed(parent, items, key, create, update) {
  const known = (parent.children_by_key ??= new Map());
  const wanted = new Set();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    wanted.add(name);
    let child = known.get(name);
    if (!child) known.set(name, (child = create(item)));
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
    update?.(child, item);
  }
  for (const [name, child] of known) {
    if (!wanted.has(name)) {
      child.remove();
      known.delete(name);
    }
  }
}

const tip = document.getElementById("tip");

function showTip(event) {
  const owner = event.target.closest?.("[data-help]");
  if (!owner) return hideTip();
  tip.textContent = owner.dataset.help;
  tip.hidden = false;
  const place = owner.getBoundingClientRect();
  const left = Math.max(8, Math.min(place.left, innerWidth - tip.offsetWidth - 8));
  const below = place.bottom + 6 + tip.offsetHeight < innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? place.bottom + 6 : place.top - tip.offsetHeight - 6}px`;
}

function hideTip() {
  tip.hidden = true;
}

// What is focused by keyboard may come into view by that.
function followTip() {
  const owner = document.activeElement;
  if (owner?.matches("[data-help]:focus-visible")) showTip({ target: owner });
  else hideTip();
}

// Help comes by pointer, by touch and by keyboard alike.
addEventListener("pointerover", showTip);
addEventListener("focusin", showTip);
addEventListener("focusout", hideTip);
addEventListener("scroll", followTip, true);
