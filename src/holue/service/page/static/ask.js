// Asking the service: one function that sends JSON and says so when no answer comes.
const place = document.getElementById("connection");

export async function ask(address, body) {
  try {
    const reply = await fetch(address, {
      method: "POST",
      headers: { "content-type": "application/json", "x-form-token": document.documentElement.dataset.formToken },
      body: JSON.stringify(body),
    });
    if (reply.status === 401) { location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`); return null; }
    const content = await reply.json();
    if (!reply.ok) { tell(content.detail ?? `The service answered ${reply.status}.`); return null; }
    tell("");
    return content;
  } catch {
    tell("No answer from the service. Nothing was changed; try again when the connection is back.");
    return null;
  }
}

export function tell(text) {
  place.textContent = text;
  place.className = text ? "notice bad" : "";
}

// A square grey image in base64, a byte a pixel, on a canvas of that many pixels.
export function showImage(canvas, image) {
  const bytes = Uint8Array.from(atob(image), (letter) => letter.charCodeAt(0));
  const side = Math.sqrt(bytes.length);
  canvas.width = canvas.height = side;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(side, side);
  bytes.forEach((grey, place) => pixels.data.set([grey, grey, grey, 255], 4 * place));
  context.putImageData(pixels, 0, 0);
}
