// The picture to start from, and the mask that is painted on it.
const $ = (id) => document.getElementById(id);
const canvas = $("init-canvas");
const mask = document.createElement("canvas"); // white where it is to be redrawn
let picture = null;
let painted = false;
let last = null;

function show() {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0);
  context.globalAlpha = 0.6;
  context.drawImage(tinted(mask), 0, 0);
  context.globalAlpha = 1;
}

/** In a colour that is seen on white, too. */
function tinted(source) {
  const out = new OffscreenCanvas(source.width, source.height);
  const context = out.getContext("2d");
  context.drawImage(source, 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = "#7a4fd0";
  context.fillRect(0, 0, out.width, out.height);
  return out;
}

export async function choose(blob) {
  picture = await createImageBitmap(blob);
  $("paint").checked = false;
  canvas.classList.remove("painting");
  for (const each of [canvas, mask]) {
    each.width = picture.width;
    each.height = picture.height;
  }
  clearMask();
  $("init-empty").hidden = true;
  $("init-chosen").hidden = false;
}

export function remove() {
  picture = null;
  $("init-file").value = "";
  $("init-empty").hidden = false;
  $("init-chosen").hidden = true;
}

function clearMask() {
  mask.getContext("2d").clearRect(0, 0, mask.width, mask.height);
  painted = false;
  show();
}

/** `source` on black, scaled to cover width x height and cut at the sides, as a data: URL. */
function covering(source, width, height) {
  const out = document.createElement("canvas");
  out.width = width;
  out.height = height;
  const context = out.getContext("2d");
  const scale = Math.max(width / source.width, height / source.height);
  const [w, h] = [source.width * scale, source.height * scale];
  context.fillRect(0, 0, width, height);
  context.drawImage(source, (width - w) / 2, (height - h) / 2, w, h);
  return out.toDataURL("image/png");
}

/** The fields of a job that this adds, its pictures in the size that will be drawn. */
export function fields(width, height) {
  if (!picture) return {};
  const all = { init_image: covering(picture, width, height), strength: Number($("strength").value) };
  return painted ? { ...all, mask: covering(mask, width, height) } : all;
}

function paintTo(event) {
  const box = canvas.getBoundingClientRect();
  const scale = canvas.width / box.width;
  const point = { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  const context = mask.getContext("2d");
  context.globalCompositeOperation = $("erase").checked ? "destination-out" : "source-over";
  context.strokeStyle = "white";
  context.lineCap = "round";
  context.lineWidth = (Number($("brush").value) / 200) * Math.max(canvas.width, canvas.height);
  context.beginPath();
  context.moveTo((last ?? point).x, (last ?? point).y);
  context.lineTo(point.x, point.y);
  context.stroke();
  last = point;
  painted = true;
  show();
}

export function start(onFile) {
  $("init-file").addEventListener("change", (event) => event.target.files[0] && onFile(event.target.files[0]));
  $("init-remove").addEventListener("click", remove);
  $("mask-clear").addEventListener("click", clearMask);
  $("strength").addEventListener("input", () => ($("strength-value").value = $("strength").value));
  $("paint").addEventListener("change", () => canvas.classList.toggle("painting", $("paint").checked));
  canvas.addEventListener("pointerdown", (event) => {
    if (!$("paint").checked) return;
    canvas.setPointerCapture(event.pointerId);
    last = null;
    paintTo(event);
  });
  canvas.addEventListener("pointermove", (event) => event.buttons && $("paint").checked && paintTo(event));
}
