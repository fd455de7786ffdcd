// What can be taken back. A forget is seen at once and sent after a while, so that its undo is exact;
// an edit, a pin and an added memory are sent at once, and their undo is another call.

const PAUSE = 8000;
const leaving = new Map();
let takeBack = null;

function toast(words, undo) {
  takeBack = undo;
  $("toast").firstElementChild.textContent = words;
  $("undo").hidden = !undo;
  $("toast").hidden = false;
}

function undoLast() {
  const undo = takeBack;
  hideToast();
  if (undo) run(Promise.resolve(undo()));
}

function hideToast() {
  takeBack = null;
  $("toast").hidden = true;
}

function forget(memory) {
  const rows = [...$("list").children], at = rows.findIndex(item => item.dataset.id === memory.id);
  const entry = { agent: agentPath(), timer: setTimeout(() => run(finish(memory.id)), PAUSE) };
  leaving.set(memory.id, entry);
  const others = leaving.size - 1;
  toast(`Forgetting “${memory.content.slice(0, 60)}”` + (others ? ` and ${others} more` : ""), keepAll);
  show();
  const next = $("list").children[Math.min(at, $("list").children.length - 1)];
  if (next) focusRow(next);
}

function keepAll() {
  for (const entry of leaving.values()) clearTimeout(entry.timer);
  leaving.clear();
  show();
}

function finishAll(options) {
  return Promise.all([...leaving.keys()].map(id => finish(id, options)));
}

async function finish(id, options) {
  const entry = leaving.get(id);
  clearTimeout(entry.timer);
  try {
    await call("DELETE", `${entry.agent}/memories/${encodeURIComponent(id)}`, null, options);
  } finally {
    leaving.delete(id);
    if (leaving.size === 0 && takeBack === keepAll) hideToast();
    await changed();
  }
}

// After a change: the agents' counts, the totals and the list as the service has them now.
async function changed() {
  const id = document.activeElement.closest?.("#list > li")?.dataset.id;
  const places = [document.querySelector("main"), document.scrollingElement].map(part => [part, part.scrollTop]);
  view.agents = await call("GET", "/api/v1/agents");
  if (view.unknown === null) view.agent ??= view.agents[0]?.name ?? null;
  showAgents();
  await load(view.memories.length);
  const item = [...$("list").children].find(one => one.dataset.id === id);
  if (item) focusRow(item);
  for (const [part, top] of places) part.scrollTop = top;
}

addEventListener("pagehide", () => {
  for (const [id, entry] of leaving) {
    clearTimeout(entry.timer);
    call("DELETE", `${entry.agent}/memories/${encodeURIComponent(id)}`, null, { keepalive: true }).catch(() => {});
  }
  leaving.clear();
});
