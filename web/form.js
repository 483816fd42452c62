// The form: what it says as the fields of a job, and back; it is the same after a reload.
const $ = (id) => document.getElementById(id);
const KEY = "sfumato-form";
const NUMBERS = ["width", "height", "steps", "cfg_scale", "seed", "guidance_rescale", "clip_skip", "batch_count"];
const TEXTS = ["prompt", "negative_prompt", "sampler", "scheduler", "output_format"];
const FIELDS = [...TEXTS, ...NUMBERS];
const NOT_OF_A_PICTURE = ["batch_count", "output_format"]; // what no picture's settings say

/** What is left empty is left to the model. */
export function read() {
  const body = { prompt: $("prompt").value };
  for (const name of TEXTS) if ($(name).value !== "") body[name] = $(name).value;
  for (const name of NUMBERS) if ($(name).value !== "") body[name] = Number($(name).value);
  return body;
}

function set(name, value) {
  $(name).value = value;
  if ($(name).tagName === "SELECT" && $(name).selectedIndex < 0) $(name).value = "";
}

/** As it was for a picture with these fields. */
export function fill(fields) {
  for (const name of FIELDS) if (!NOT_OF_A_PICTURE.includes(name)) set(name, fields[name] ?? "");
  remember();
}

export function remember() {
  localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, $(name).value]))));
}

export function recall() {
  const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
  for (const name of FIELDS) if (name in kept) set(name, kept[name]);
}

export function showDefaults(model) {
  $("width").placeholder = model.default_width;
  $("height").placeholder = model.default_height;
  $("steps").placeholder = model.default_steps;
  $("cfg_scale").placeholder = model.default_guidance;
}

function addChoices(select, names) {
  for (const name of names) select.append(new Option(name));
}

/** `options` is what /api/options answers. `lastSeed()`: the newest picture's, if any. */
export function start(options, lastSeed) {
  addChoices($("sampler"), options.samplers);
  addChoices($("scheduler"), options.schedulers.filter((name) => name !== "Automatic"));
  $("steps").max = options.limits.max_steps;
  $("batch_count").max = options.limits.max_images;
  recall();
  $("form").addEventListener("input", remember);
  const setSeed = (seed) => {
    $("seed").value = seed;
    remember();
  };
  $("random").addEventListener("click", () => setSeed(""));
  $("reuse").addEventListener("click", () => setSeed(lastSeed() ?? ""));
  $("swap").addEventListener("click", () => {
    [$("width").value, $("height").value] = [$("height").value, $("width").value];
    remember();
  });
}
