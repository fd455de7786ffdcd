// Keys, buttons, and the start.

function focusRow(item) {
  for (const other of $("list").children) other.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
}

function move(step) {
  const inAgents = $("side").contains(document.activeElement);
  const items = [...(inAgents ? $("agents").querySelectorAll("button") : $("list").children)];
  const at = items.indexOf(document.activeElement.closest("#list > li, #agents button"));
  const item = items[Math.min(Math.max(at + step, 0), items.length - 1)];
  if (item) inAgents ? item.focus() : focusRow(item);
}

addEventListener("keydown", event => {
  if ($("door").open || $("drawer").open || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select, textarea"), onRow = event.target.matches("#list > li");
  if (event.key === "/" && !typing) $("question").focus();
  else if (event.key === "Escape") back();
  else if (event.key === "ArrowDown" && !event.target.matches("select, [type=date]")) move(1);
  else if (event.key === "ArrowUp" && !typing) move(-1);
  else if (event.key === "Enter" && onRow) event.target.querySelector(".details").click();
  else if ((event.key === "Delete" || event.key === "Backspace") && onRow) event.target.querySelector(".forget").click();
  else return;
  event.preventDefault();
});

// One step back: the open agents, the last change, or the question and the filters.
function back() {
  if ($("side").classList.contains("open")) return openSide(false);
  if (leaving.size && !$("question").value) return undoLast();
  $("question").value = "";
  document.activeElement.blur();
  run(loadAll());
}

function signOut() {
  for (const entry of leaving.values()) clearTimeout(entry.timer);
  finishAll({ keepalive: true }).catch(() => {});
  sessionStorage.removeItem(KEY);
  Object.assign(view, { agents: [], agent: null, totals: null, memories: [], hits: null, next: null, turn: view.turn + 1 });
  $("find-agent").value = "";
  hideToast();
  showAgents();
  show();
  run(follow(true));
}

function ask() {
  view.limit = HITS;
  return run(loadHere());
}

function refresh() {
  run(view.agents.length ? changed() : follow(true));
}

$("ask").onsubmit = event => { event.preventDefault(); ask(); };
$("question").oninput = () => { if (!$("question").value && view.hits !== null) ask(); };
for (const id of FILTERS) $(id).onchange = ask;
$("find-agent").oninput = showAgents;
$("find-agent").onkeydown = event => { if (event.key === "Enter") $("agents").querySelector("button")?.click(); };
$("choose").onclick = () => openSide(true);
$("shut").onclick = () => openSide(false);
$("refresh").onclick = $("retry").onclick = refresh;
$("leave").onclick = signOut;
$("reset").onclick = back;
$("undo").onclick = undoLast;
$("dismiss").onclick = () => { $("toast").hidden = true; };
$("more").onclick = () => run(loadMore());
$("range").onchange = showChart;
addEventListener("pageshow", event => { if (event.persisted) refresh(); });
let resizing;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(showChart); });
run(follow(true));
