// Talking to the server. Errors are Error objects whose message is for people.
const KEY = "sfumato-api-key";
const MOST_TRIES = 10; // a second apart, for a connection that broke

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

export async function call(path, options = {}, mayAsk = true) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers) });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  if (response.status === 401 && mayAsk) {
    const key = prompt("This server wants an API key:");
    if (key) {
      sessionStorage.setItem(KEY, key.trim());
      return call(path, options, false);
    }
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const wait = response.headers.get("Retry-After");
  const message = body?.error?.message?.replace(/^\[[^\]]*\] /, "") ?? `The server answers ${response.status}.`;
  throw Object.assign(new Error(wait ? `${message} (in ${wait} s)` : message), { isAnswer: true });
}

export async function json(path, options) {
  return (await call(path, options)).json();
}

export function post(path, body) {
  return json(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

/** A picture of a job (fetched, since an <img> cannot send a key). */
export async function blob(path) {
  return (await call(path)).blob();
}

/** Cancels a job while the page goes away. */
export function leave(path) {
  fetch(path, { method: "DELETE", headers: headers(), keepalive: true });
}

async function* stream(id) {
  const response = await call(`/api/jobs/${id}/events`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const lines = text.slice(0, end).split("\n");
      const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (field("event")) yield { event: field("event"), data: JSON.parse(field("data")) };
    }
  }
}

/** Server-sent events of a job as an async iterator of {event, data}; by fetch, since EventSource cannot send a key.
    Ends with "done", "failed" or "cancelled": a connection that breaks, as phones' do, is made again. */
export async function* events(id) {
  for (let tries = 0; ; ++tries) {
    try {
      for await (const { event, data } of stream(id)) {
        yield { event, data };
        if (["done", "failed", "cancelled"].includes(event)) return;
        tries = 0;
      }
    } catch (error) {
      if (error.isAnswer || tries >= MOST_TRIES) throw error;
    }
    await new Promise((resume) => setTimeout(resume, 1000));
  }
}
