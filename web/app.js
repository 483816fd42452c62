// The page: a form, a job, pictures.
import * as api from "./api.js";
import * as gallery from "./gallery.js";
import * as init from "./init.js";

const $ = (id) => document.getElementById(id);
const NUMBERS = ["width", "height", "steps", "cfg_scale", "seed", "batch_count"];
const TEXTS = ["prompt", "negative_prompt", "sampler", "scheduler"];
let models = [];
let job = null; // {id}

function say(text, isError = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", isError);
}

function time(seconds) {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

function chosenModel() {
  return models.find((model) => model.name === $("model").value) ?? models[0];
}

function showDefaults() {
  const model = chosenModel();
  $("width").placeholder = model.default_width;
  $("height").placeholder = model.default_height;
  $("steps").placeholder = model.default_steps;
  $("cfg_scale").placeholder = model.default_guidance;
}

function readForm() {
  const body = { model: $("model").value, preview: true };
  for (const name of TEXTS) if ($(name).value !== "" || name === "prompt") body[name] = $(name).value;
  for (const name of NUMBERS) if ($(name).value !== "") body[name] = Number($(name).value);
  const width = body.width ?? chosenModel().default_width;
  const height = body.height ?? chosenModel().default_height;
  return { ...body, ...init.fields(width, height) };
}

function fillForm(fields) {
  for (const name of [...TEXTS, ...NUMBERS]) {
    if (name === "batch_count") continue;
    const value = fields[name] ?? "";
    const isChoice = $(name).tagName === "SELECT";
    $(name).value = isChoice && ![...$(name).options].some((option) => option.value === value) ? "" : value;
  }
}

function setBusy(isBusy) {
  $("go").disabled = isBusy;
  $("cancel").disabled = !isBusy;
  $("work").hidden = !isBusy;
  if (isBusy) {
    $("bar").removeAttribute("value");
    $("preview").removeAttribute("src");
  }
}

const on = {
  queued: ({ position, eta_seconds }) =>
    say(position === 0 ? "Starting…" : `${position} before you${eta_seconds === null ? "" : `, about ${time(eta_seconds)}`}`),
  progress: ({ stage, step, steps, eta_seconds, preview }) => {
    if (preview) $("preview").src = preview;
    if (stage === "text") return say("Reading the prompt…");
    if (stage === "encode") return say("Looking at the picture…");
    if (stage === "decode") return say("Finishing…");
    $("bar").max = steps;
    $("bar").value = step;
    say(`Step ${step} of ${steps}${eta_seconds === null ? "" : `, ${time(eta_seconds)} left`}`);
  },
  failed: ({ error }) => say(error.message.replace(/^\[[^\]]*\] /, ""), true),
  cancelled: () => say("Cancelled."),
  done: async (result) => {
    for (const image of result.images) {
      const url = await api.pictureUrl(image.url);
      gallery.add({ url, seed: image.seed, parameters: image.parameters, name: `sfumato-${image.seed}.png` });
    }
    say([`${time(result.seconds)}, seed ${result.images[0]?.seed}`, ...result.warnings].join(". "));
  },
};

async function generate() {
  if (job) return;
  setBusy(true);
  say("Sending…");
  try {
    job = await api.post("/api/jobs", readForm());
    for await (const { event, data } of api.events(job.id)) await on[event]?.(data);
  } catch (error) {
    say(error.message, true);
  }
  job = null;
  setBusy(false);
}

async function cancel() {
  if (job) await api.call(`/api/jobs/${job.id}`, { method: "DELETE" }).catch((error) => say(error.message, true));
}

async function useSettings(blob) {
  const { fields } = await api.json("/api/png-info", { method: "POST", body: blob });
  fillForm(fields);
  say("The form is as it was for this picture.");
}

/** A picture with settings refills the form; any other is one to start from. */
async function takeFile(file) {
  try {
    await useSettings(file);
  } catch {
    await init.choose(file).catch(() => say("This is no picture that can be read.", true));
  }
}

function listenForDrops() {
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dragging");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("dragging"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dragging");
    if (event.dataTransfer.files[0]) takeFile(event.dataTransfer.files[0]);
  });
}

function listenForKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      generate();
    }
    if (event.key === "Escape" && !$("lightbox").open) cancel();
  });
}

function listenForTheme() {
  const stored = localStorage.getItem("sfumato-theme");
  if (stored) document.documentElement.dataset.theme = stored;
  $("theme").addEventListener("click", () => {
    const isDark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
    document.documentElement.dataset.theme = isDark ? "light" : "dark";
    localStorage.setItem("sfumato-theme", document.documentElement.dataset.theme);
  });
}

function fillSelect(select, names, label = (name) => name) {
  for (const name of names) select.append(new Option(label(name), name));
}

async function start() {
  listenForTheme();
  listenForDrops();
  listenForKeys();
  init.start((file) => init.choose(file).catch(() => say("This is no picture that can be read.", true)));
  gallery.start({ settings: useSettings, picture: (blob) => init.choose(blob) });
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    generate();
  });
  $("cancel").addEventListener("click", cancel);
  $("random").addEventListener("click", () => ($("seed").value = ""));
  $("reuse").addEventListener("click", () => ($("seed").value = gallery.newest()?.seed ?? ""));
  $("model").addEventListener("change", showDefaults);
  try {
    models = await api.json("/api/models");
    const options = await api.json("/api/options");
    fillSelect($("model"), models.map((model) => model.name));
    fillSelect($("sampler"), options.samplers);
    fillSelect($("scheduler"), options.schedulers.filter((name) => name !== "Automatic"));
    $("steps").max = options.limits.max_steps;
    $("batch_count").max = options.limits.max_images;
    showDefaults();
  } catch (error) {
    say(error.message, true);
  }
}

start();
