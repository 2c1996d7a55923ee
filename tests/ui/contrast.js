// Texts with less contrast than 4.5 to 1.
() => {
  const read = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (element) => { for (; element; element = element.parentElement) {
    const colour = read(getComputedStyle(element).backgroundColor);
    if (colour.length === 3 || colour[3] > .9) return colour; } return [255, 255, 255]; };
  const poor = [];
  for (const element of document.querySelectorAll("td, th, h1, h2, a, button, summary span, dt, dd, .note, .state, #notice, strong")) {
    if (!element.innerText?.trim() || !element.offsetParent) continue;
    const [a, b] = [light(read(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) poor.push(`${element.className} ${element.innerText.slice(0, 30)} ${((a + .05) / (b + .05)).toFixed(2)}`);
  }
  return poor;
}
