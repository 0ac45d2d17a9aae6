// Try it: a character is chosen, morphed or drawn; the sliders spoil it; the answer follows.
import { drawBars } from "./bars.js";
import { ask, showImage } from "./ask.js";

const SIZE = 32;
const byId = (id) => document.getElementById(id);
const state = { kind: "choose", character: null };
const tabs = [...document.querySelectorAll("[role=tab]")];
const ink = byId("ink");
const pen = ink.getContext("2d", { willReadFrequently: true });

// One question at a time: while one is on its way, only the newest of the others is kept.
let asking = false;
let waiting = false;

async function update() {
  if (asking) { waiting = true; return; }
  asking = true;
  try {
    do {
      waiting = false;
      const reply = await ask("/try/answer", request());
      if (reply) show(reply);
    } while (waiting);
  } finally { asking = false; }
}

function request() {
  const damage = {
    size: SIZE - Number(byId("size").value), blur: Number(byId("blur").value),
    noise: Number(byId("noise").value), cover: Number(byId("cover").value),
  };
  if (state.kind === "draw") return { kind: "draw", pixels: drawnPixels(), ...damage };
  if (state.kind === "morph") {
    return { kind: "morph", first: byId("first").value, second: byId("second").value, position: Number(byId("position").value), ...damage };
  }
  return { kind: "choose", first: state.character, ...damage };
}

function show(reply) {
  for (const id of ["seen", "small"]) showImage(byId(id), reply.image);
  const verdict = byId("verdict");
  verdict.className = `verdict ${reply.decision}`;
  verdict.textContent = reply.verdict;
  byId("reason").textContent = reply.reason;
  drawBars(byId("bars"), reply.possibilities);
}

function choose(character) {
  state.character = character;
  for (const button of document.querySelectorAll("[data-character]")) {
    button.setAttribute("aria-pressed", String(button.dataset.character === character));
  }
}

function turnTo(kind) {
  state.kind = kind;
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${kind}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  byId("try").dataset.kind = kind;
  ink.hidden = byId("small").hidden = kind !== "draw";
  byId("hint").hidden = kind !== "draw" || state.inked;
}

function clean() {
  for (const id of ["size", "blur", "noise", "cover"]) byId(id).value = 0;
}

// Drawing

function wipe() {
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, ink.width, ink.height);
  state.inked = false;
  byId("hint").hidden = state.kind !== "draw";
}

function drawnPixels() {
  // Each of the 32 × 32 pixels is the mean of its ten by ten.
  const step = ink.width / SIZE;
  const data = pen.getImageData(0, 0, ink.width, ink.height).data;
  const bytes = new Uint8Array(SIZE * SIZE);
  for (let row = 0; row < SIZE; row++) {
    for (let column = 0; column < SIZE; column++) {
      let sum = 0;
      for (let y = 0; y < step; y++) {
        for (let x = 0; x < step; x++) sum += data[4 * ((row * step + y) * ink.width + column * step + x)];
      }
      bytes[row * SIZE + column] = Math.round(sum / (step * step));
    }
  }
  return btoa(String.fromCharCode(...bytes));
}

function place(event) {
  const box = ink.getBoundingClientRect();
  return [((event.clientX - box.left) * ink.width) / box.width, ((event.clientY - box.top) * ink.height) / box.height];
}

let last = null;
ink.addEventListener("pointerdown", (event) => {
  ink.setPointerCapture(event.pointerId);
  last = place(event);
  state.inked = true;
  byId("hint").hidden = true;
  line(last, last);
});
ink.addEventListener("pointermove", (event) => {
  if (last === null) return;
  const next = place(event);
  line(last, next);
  last = next;
});
for (const end of ["pointerup", "pointercancel"]) ink.addEventListener(end, () => { last = null; update(); });

function line(from, to) {
  pen.strokeStyle = "#000";
  pen.lineWidth = 20;
  pen.lineCap = pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
  update();
}

// What the visitor can touch

for (const tab of tabs) {
  tab.addEventListener("click", () => { turnTo(tab.id.slice(4)); update(); });
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
}
for (const button of document.querySelectorAll("[data-character]")) {
  button.addEventListener("click", () => { choose(button.dataset.character); update(); });
}
for (const id of ["size", "blur", "noise", "cover", "position", "first", "second"]) byId(id).addEventListener("input", update);
byId("clear").addEventListener("click", () => { wipe(); update(); });

const examples = [...document.querySelectorAll("[data-example]")];
const requestOf = (button) => JSON.parse(button.dataset.example);

function mark(example) {
  for (const button of examples) button.setAttribute("aria-pressed", String(button === example));
  byId("caption").textContent = example ? example.dataset.caption : "";
}

function press(button) {
  const example = requestOf(button);
  mark(button);
  clean();
  turnTo(example.kind);
  if (example.kind === "choose") choose(example.first);
  if (example.kind === "morph") {
    byId("first").value = example.first;
    byId("second").value = example.second;
    byId("position").value = example.position;
  }
  byId("size").value = SIZE - (example.size ?? SIZE);
  byId("noise").value = example.noise ?? 0;
  update();
}

for (const button of examples) button.addEventListener("click", () => press(button));

// Watching: the four examples one after the other, each slider moved as a visitor would. Any touch ends it.

const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const watchButton = byId("watch");
let showing = null;

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function stop() {
  showing = null;
  watchButton.textContent = "▶ Watch";
  watchButton.setAttribute("aria-pressed", "false");
}

async function slide(mine, id, from, to, milliseconds) {
  const steps = still ? 1 : 25;
  for (let step = 1; step <= steps && showing === mine; step++) {
    byId(id).value = from + ((to - from) * step) / steps;
    update();
    await pause(milliseconds / steps);
  }
}

async function watch() {
  const mine = showing = {};
  watchButton.textContent = "■ Stop";
  watchButton.setAttribute("aria-pressed", "true");
  for (const button of examples) {
    if (showing !== mine) return;
    const { kind, size } = requestOf(button);
    press(button);
    if (kind === "morph") {
      await slide(mine, "position", 0, 0.5, 2500);
      await pause(2000);
      await slide(mine, "position", 0.5, 1, 2500);
    } else if (size) {
      await slide(mine, "size", 0, SIZE - size, 2500);
    }
    await pause(2500);
  }
  if (showing === mine) stop();
}

watchButton.addEventListener("click", () => (showing ? stop() : watch()));
for (const name of ["pointerdown", "keydown"]) {
  document.addEventListener(name, (event) => { if (showing && !watchButton.contains(event.target)) stop(); });
}
for (const touched of document.querySelectorAll(".try input, .try select, [role=tab], [data-character]")) {
  touched.addEventListener("input", () => mark(null));
  touched.addEventListener("click", () => mark(null));
}

wipe();
press(examples[0]);
