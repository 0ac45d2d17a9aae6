// Calibration: the handle on the curve says how many answers to keep and what errors to expect among them.
const figure = document.querySelector(".curve");

if (figure) {
  const points = JSON.parse(figure.dataset.points);
  const kept = document.getElementById("kept");
  const handle = document.getElementById("handle");
  const told = document.getElementById("told");
  const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;

  const show = () => {
    const point = points[Number(kept.value)];
    handle.setAttribute("cx", point.x);
    handle.setAttribute("cy", point.y);
    told.textContent = `Filter ${percent(1 - point.kept, 0)} of the answers (quality below ${point.filter.toFixed(3)}) and expect `
      + `${percent(point.error)} errors among the rest (${percent(point.lower)} to ${percent(point.upper)}).`;
  };
  kept.addEventListener("input", show);
  handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const box = handle.ownerSVGElement.getBoundingClientRect();
    const x = ((event.clientX - box.left) * 640) / box.width;
    const nearest = points.reduce((best, point, place) => (Math.abs(point.x - x) < Math.abs(points[best].x - x) ? place : best), 0);
    kept.value = nearest;
    show();
  });
  show();
}
