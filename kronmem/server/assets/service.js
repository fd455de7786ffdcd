// The service: the public HTTP API and nothing else. Everything that comes from it is set as text, never as markup.

const $ = id => document.getElementById(id);
const KEY = "kronmem-key";
const PATIENCE = 20000;

async function call(method, path, body, options = {}) {
  const headers = { accept: "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers["x-api-key"] = key;
  if (body) headers["content-type"] = "application/json";
  const reply = await send(path, { method, headers, body: body && JSON.stringify(body), ...options });
  if (reply.status === 401) {
    await unlock(Boolean(key));
    return call(method, path, body, options);
  }
  $("leave").hidden = !key;
  if (!reply.ok) throw new Error(await refusal(reply));
  return reply.status === 204 ? null : reply.json();
}

async function send(path, options) {
  try {
    return await fetch(path, { signal: AbortSignal.timeout(PATIENCE), ...options });
  } catch (error) {
    const slow = error.name === "TimeoutError";
    throw new Error(slow
      ? `${location.origin} did not answer within ${PATIENCE / 1000} seconds. It may be busy or stopped: look at the terminal where “kronmem serve” runs.`
      : `Cannot connect to ${location.origin}. Is the server running? Start it with “kronmem serve --port ${location.port || 7070}” and the same --db, then try again.`);
  }
}

async function refusal(reply) {
  const said = await reply.json().catch(() => ({}));
  const detail = Array.isArray(said.detail) ? said.detail.map(one => `${(one.loc ?? []).slice(1).join(".")}: ${one.msg}`).join("; ") : said.detail;
  return `${detail || "The service gave no reason"} (${reply.status})`;
}

let unlocking = null;
function unlock(wrong) {
  unlocking ??= new Promise(opened => {
    $("door-text").textContent = wrong
      ? "That key is not one of this server's. Its keys are set where it was started, with --key or KRONMEM_SERVE_KEYS; a removed key must be replaced by a current one."
      : "It is one of the keys that the server was started with (--key or KRONMEM_SERVE_KEYS). It stays in this tab and is forgotten when the tab is closed.";
    $("door-text").className = wrong ? "wrong" : "";
    $("key").value = "";
    sessionStorage.removeItem(KEY);
    $("door").showModal();
    $("unlock").onsubmit = () => {
      sessionStorage.setItem(KEY, $("key").value);
      unlocking = null;
      opened();
    };
  });
  return unlocking;
}
$("door").addEventListener("cancel", event => event.preventDefault());

function run(work) {
  return work.then(() => { $("trouble").hidden = true; }, error => {
    $("trouble").firstElementChild.textContent = error.message;
    $("trouble").hidden = false;
  });
}

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function button(className, text, action, label) {
  const element = make("button", className, text);
  element.type = "button";
  if (label) element.setAttribute("aria-label", label);
  element.onclick = action;
  return element;
}
