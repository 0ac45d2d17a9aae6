// Bars: one row for each possibility, with its picture or sign, its name and its probability.
import { showImage } from "./ask.js";

export function drawBars(list, possibilities) {
  while (list.children.length > possibilities.length) list.lastChild.remove();
  while (list.children.length < possibilities.length) list.append(row());
  possibilities.forEach((possibility, place) => fill(list.children[place], possibility));
}

function row() {
  const item = document.createElement("li");
  const label = document.createElement("span");
  label.className = "label";
  const bar = document.createElement("progress");
  bar.max = 1;
  const value = document.createElement("span");
  value.className = "value";
  item.append(document.createElement("span"), label, bar, value);
  return item;
}

function fill(item, { name, probability, image, nobody }) {
  const [, label, bar, value] = item.children;
  item.className = nobody ? "nobody" : "";
  item.replaceChild(picture(image), item.firstChild);
  label.textContent = name;
  bar.value = probability;
  bar.setAttribute("aria-label", `${name}: ${probability.toFixed(2)}`);
  value.textContent = probability.toFixed(2);
}

function picture(image) {
  if (!image) {
    const sign = document.createElement("span");
    sign.className = "sign";
    sign.textContent = "∅";
    sign.setAttribute("aria-hidden", "true");
    return sign;
  }
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  showImage(canvas, image);
  return canvas;
}
