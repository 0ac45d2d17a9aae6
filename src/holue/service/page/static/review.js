// Review by keys: each key presses the button that is marked with it, once.
let decided = false;

document.addEventListener("submit", (event) => {
  if (decided) event.preventDefault(); // a double click sends one decision
  decided = true;
});
window.addEventListener("pageshow", () => { decided = false; }); // the back button may show the page as it was left

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input, textarea, select, summary")) return;
  // The space bar keeps its usual meaning on a button or a link that has the focus.
  if (event.key === " " && event.target.closest("button, a")) return;
  const button = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
});
