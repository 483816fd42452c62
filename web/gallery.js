// Finished pictures, and one of them large.
const $ = (id) => document.getElementById(id);
const pictures = []; // {url, seed, parameters, name}, newest first
let shown = 0;
let actions = {};

export function newest() {
  return pictures[0];
}

export function add(picture) {
  pictures.unshift(picture);
  const button = document.createElement("button");
  button.type = "button";
  button.title = picture.parameters.split("\n")[0];
  const image = document.createElement("img");
  image.src = picture.url;
  image.alt = button.title || "A picture";
  button.append(image);
  button.addEventListener("click", () => open(pictures.indexOf(picture)));
  $("gallery").prepend(button);
}

function open(index) {
  shown = (index + pictures.length) % pictures.length;
  const picture = pictures[shown];
  $("large").src = picture.url;
  $("large").alt = picture.parameters.split("\n")[0];
  $("details").textContent = picture.parameters;
  $("save").href = picture.url;
  $("save").download = picture.name;
  if (!$("lightbox").open) $("lightbox").showModal();
}

/** `use`: {settings(blob), picture(blob)} */
export function start(use) {
  actions = use;
  $("previous").addEventListener("click", () => open(shown - 1));
  $("next").addEventListener("click", () => open(shown + 1));
  $("close").addEventListener("click", () => $("lightbox").close());
  $("lightbox").addEventListener("click", (event) => event.target === $("lightbox") && $("lightbox").close());
  $("lightbox").addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") open(shown - 1);
    if (event.key === "ArrowRight") open(shown + 1);
  });
  for (const [id, action] of [["use-settings", "settings"], ["use-picture", "picture"]])
    $(id).addEventListener("click", async () => {
      const blob = await (await fetch(pictures[shown].url)).blob();
      $("lightbox").close();
      actions[action](blob);
    });
}
