// Finished pictures: the newest in the frame, all as thumbnails, and one of them large.
const $ = (id) => document.getElementById(id);
const pictures = []; // {url, name, seed, parameters}, newest first
let shown = 0;

function title(picture) {
  return picture.parameters.split("\n")[0] || "A picture";
}

export function newest() {
  return pictures[0];
}

export function showNewest(isShown) {
  $("newest").hidden = !isShown || pictures.length === 0;
  $("empty").hidden = pictures.length > 0;
}

export function add(picture) {
  pictures.unshift(picture);
  const image = new Image();
  image.src = picture.url;
  image.alt = title(picture);
  const button = document.createElement("button");
  button.type = "button";
  button.title = `${title(picture)} (seed ${picture.seed})`;
  button.append(image);
  button.addEventListener("click", () => open(pictures.indexOf(picture)));
  $("gallery").prepend(button);
  const large = $("newest").firstElementChild;
  large.src = picture.url;
  large.alt = title(picture);
}

function open(index) {
  shown = (index + pictures.length) % pictures.length;
  const picture = pictures[shown];
  $("large").src = picture.url;
  $("large").alt = title(picture);
  $("details").textContent = picture.parameters;
  $("save").href = picture.url;
  $("save").download = picture.name;
  if (!$("lightbox").open) $("lightbox").showModal();
}

/** `use`: {settings(blob), picture(blob)} */
export function start(use) {
  $("newest").addEventListener("click", () => open(0));
  $("previous").addEventListener("click", () => open(shown - 1));
  $("next").addEventListener("click", () => open(shown + 1));
  $("close").addEventListener("click", () => $("lightbox").close());
  $("lightbox").addEventListener("click", (event) => event.target === $("lightbox") && $("lightbox").close());
  $("lightbox").addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") open(shown - 1);
    if (event.key === "ArrowRight") open(shown + 1);
  });
  for (const [id, action] of [["use-settings", use.settings], ["use-picture", use.picture]])
    $(id).addEventListener("click", async () => {
      const blob = await (await fetch(pictures[shown].url)).blob();
      $("lightbox").close();
      action(blob);
    });
}
