// The page: a form, a job, pictures.
import * as api from "./api.js";
import * as form from "./form.js";
import * as gallery from "./gallery.js";
import * as init from "./init.js";

const $ = (id) => document.getElementById(id);
const TITLE = document.title;
let models = [];
let job = null; // {id}, from the click until it is over

/** For everybody, and read aloud; the steps are not, there are too many of them. */
function say(text, isError = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", isError);
}

function sayStep(text, done = null) {
  $("steps-done").textContent = text;
  document.title = text === "" || done === null ? TITLE : `${Math.round(100 * done)} % · ${TITLE}`;
}

function time(seconds) {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} min`;
}

function chosenModel() {
  return models.find((model) => model.name === $("model").value) ?? models[0];
}

function readJob() {
  const model = chosenModel();
  const body = { model: model.name, preview: true, ...form.read() };
  return { ...body, ...init.fields(body.width ?? model.default_width, body.height ?? model.default_height) };
}

function setBusy(isBusy) {
  $("go").disabled = isBusy;
  $("cancel").disabled = !isBusy;
  $("bar").hidden = !isBusy;
  $("bar").removeAttribute("value");
  if (isBusy) $("preview").removeAttribute("src");
  $("preview").hidden = true;
  gallery.showNewest(!isBusy);
  sayStep("");
}

const STAGES = { text: "Reading the prompt…", encode: "Looking at your picture…", decode: "Finishing…" };

function left(eta) {
  return eta === null ? "" : `, about ${time(eta)} left`;
}

async function addPictures(result) {
  for (const image of result.images) {
    const blob = await api.blob(image.url);
    const name = `sfumato-${image.seed}.${blob.type.split("/")[1].replace("jpeg", "jpg")}`;
    gallery.add({ url: URL.createObjectURL(blob), name, ...image });
  }
}

const on = {
  queued: ({ position, eta_seconds }) => say(position === 0 ? "Starting…" : `${position} before you${left(eta_seconds)}`),
  progress: ({ stage, step, steps, eta_seconds, preview }) => {
    if (preview) $("preview").src = preview;
    if (preview) $("preview").hidden = false;
    if (STAGES[stage]) return say(STAGES[stage]);
    if (step <= 1) say("Drawing…");
    $("bar").max = steps;
    $("bar").value = step;
    sayStep(`Step ${step} of ${steps}${left(eta_seconds)}`, step / steps);
  },
  failed: ({ error }) => say(error.message.replace(/^\[[^\]]*\] /, ""), true),
  cancelled: () => say("Cancelled."),
  done: async (result) => {
    await addPictures(result);
    const seeds = result.images.map((image) => image.seed);
    say([`${time(result.seconds)}, seed ${seeds.join(", ")}`, ...result.warnings].join(". "));
  },
};

async function generate() {
  if (job) return;
  job = {};
  setBusy(true);
  say("Sending…");
  if (matchMedia("(max-width: 800px)").matches) $("frame").scrollIntoView({ behavior: "smooth", block: "center" });
  try {
    job = await api.post("/api/jobs", readJob());
    for await (const { event, data } of api.events(job.id)) await on[event]?.(data);
  } catch (error) {
    say(error.message, true);
  }
  job = null;
  setBusy(false);
}

async function cancel() {
  if (job?.id) await api.call(`/api/jobs/${job.id}`, { method: "DELETE" }).catch((error) => say(error.message, true));
}

async function useSettings(blob) {
  const { fields } = await api.json("/api/png-info", { method: "POST", body: blob });
  form.fill(fields);
  say("The form is as it was for this picture.");
}

function startFrom(blob) {
  return init.choose(blob).catch(() => say("This is no picture that can be read.", true));
}

/** A picture with settings refills the form; any other is one to start from. */
async function takeFile(file) {
  await useSettings(file).catch(() => startFrom(file));
}

function listenForFiles() {
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
  document.addEventListener("paste", (event) => event.clipboardData.files[0] && takeFile(event.clipboardData.files[0]));
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

/** data-theme is always set: to the visitor's choice, or to the system's while they are the same. */
function listenForTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const systems = () => (system.matches ? "dark" : "light");
  const show = () => (document.documentElement.dataset.theme = localStorage.getItem("sfumato-theme") ?? systems());
  show();
  system.addEventListener("change", show);
  $("theme").addEventListener("click", () => {
    const wanted = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    if (wanted === systems()) localStorage.removeItem("sfumato-theme");
    else localStorage.setItem("sfumato-theme", wanted);
    show();
  });
}

async function start() {
  listenForTheme();
  listenForFiles();
  listenForKeys();
  init.start(startFrom);
  gallery.start({ settings: useSettings, picture: startFrom });
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    generate();
  });
  $("cancel").addEventListener("click", cancel);
  $("model").addEventListener("change", () => form.showDefaults(chosenModel()));
  window.addEventListener("pagehide", () => job?.id && api.leave(`/api/jobs/${job.id}`));
  try {
    models = await api.json("/api/models");
    for (const model of models) $("model").append(new Option(model.name));
    form.start(await api.json("/api/options"), () => gallery.newest()?.seed);
    form.showDefaults(chosenModel());
  } catch (error) {
    say(error.message, true);
  }
}

start();
