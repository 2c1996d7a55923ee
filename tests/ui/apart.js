// Pairs of spans of a timeline whose bars or names stand on each other.
() => {
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const parts = [...document.querySelectorAll(".span")].map((span) => ({
    name: span.innerText,
    boxes: [...span.querySelectorAll(".bar, .bar > span")].map((each) => each.getBoundingClientRect()),
  }));
  const pairs = parts.flatMap((one, i) => parts.slice(i + 1).map((other) => [one, other]));
  return pairs.filter(([one, other]) => one.boxes.some((a) => other.boxes.some((b) => meet(a, b)))).map(([one, other]) => `${one.name} ${other.name}`);
}
