// The memories of one agent: all of them page by page, or those that answer a question, best first.

const PAGE = 100, HITS = 20, MOST_HITS = 100, MOST_CHOICES = 1000;
const FILTERS = ["type", "session", "tag", "since", "until"];
const view = { agents: [], agent: null, unknown: null, asked: "", totals: null, memories: [], total: 0, next: null, hits: null, limit: HITS, turn: 0 };

const agentPath = () => `/api/v1/agents/${encodeURIComponent(view.agent)}`;
const filtered = () => FILTERS.some(id => $(id).value);

function filters() {
  const [since, until] = [$("since").value, $("until").value].map(day => day && new Date(`${day}T00:00`));
  if (until) until.setDate(until.getDate() + 1); // the day itself is meant too
  const given = { memory_type: $("type").value, session_id: $("session").value, tag: $("tag").value };
  return { ...given, since: since && since.toISOString(), until: until && until.toISOString() };
}

// All memories of the agent, or its answers to the question, without filters.
async function loadAll() {
  for (const id of FILTERS) $(id).value = "";
  await loadHere();
}

async function loadHere() {
  await load();
  visit();
}

// The totals are the service's own: exact, however few memories are loaded.
async function load(count = PAGE) {
  const turn = ++view.turn, question = $("question").value.trim();
  const nothing = [null, { results: null, memories: [], total: 0, next: null }];
  const [totals, found] = view.agent === null ? nothing : await Promise.all([call("GET", `${agentPath()}/summary`), question ? recalled(question) : listed(count)]);
  if (turn !== view.turn) return;
  view.totals = totals;
  view.asked = question;
  view.hits = question ? found.results : null;
  if (!question || view.agent === null) [view.memories, view.total, view.next] = [found.memories, found.total, found.next];
  show();
}

// As many pages as hold `count` memories: after a change the list is as long as before.
async function listed(count) {
  const found = await page();
  while (found.next && found.memories.length < count) {
    const more = await page(found.next);
    Object.assign(found, { memories: [...found.memories, ...more.memories], next: more.next });
  }
  return found;
}

function page(after) {
  const query = new URLSearchParams({ limit: PAGE });
  for (const [name, value] of Object.entries(filters())) if (value) query.set(name, value);
  if (after) query.set("after", after);
  return call("GET", `${agentPath()}/memories?${query}`);
}

function recalled(query) {
  const { memory_type, session_id, tag, since, until } = filters();
  const asked = { query, limit: view.limit, kronmem: { count_access: false } }; // looking is not remembering
  if (memory_type) asked.memory_type = memory_type;
  if (session_id) asked.session_id = session_id;
  if (tag) asked.tags = [tag];
  if (since) asked.kronmem.since = since;
  if (until) asked.kronmem.until = until;
  return call("POST", `${agentPath()}/recall`, asked);
}

async function loadMore() {
  if (view.hits !== null) {
    view.limit = MOST_HITS;
    return load();
  }
  const turn = ++view.turn, more = await page(view.next);
  if (turn !== view.turn) return;
  view.memories = [...view.memories, ...more.memories];
  view.next = more.next;
  show();
}

function show() {
  const found = (view.hits ?? view.memories.map(memory => ({ memory }))).filter(hit => !leaving.has(hit.memory.id));
  document.title = view.agent ? `${view.agent} · kronmem` : "kronmem";
  $("title").textContent = view.agent ?? (view.unknown === null ? "No memories yet" : `No agent is named “${view.unknown}”`);
  $("summary").textContent = summary(found.length);
  showFilters();
  $("list").replaceChildren(...found.map(row));
  if ($("list").firstChild) $("list").firstChild.tabIndex = 0;
  $("more").hidden = view.hits === null ? !view.next : view.limit === MOST_HITS || view.hits.length < view.limit;
  showEmpty(found.length);
  showChart();
}

function summary(count) {
  if (view.agent === null || !view.totals) return "";
  if (view.hits !== null) return count ? `${memories(count)} for “${$("question").value.trim()}”, most similar first` : "";
  const pending = [...leaving.values()].filter(entry => entry.agent === agentPath()).length;
  if (filtered()) return `${memories(Math.max(view.total - pending, 0))} with these filters, of ${number(view.totals.count)}`;
  const sessions = Object.keys(view.totals.sessions).length;
  return memories(Math.max(view.totals.count - pending, 0)) + (sessions ? ` in ${plural(sessions, "session", "sessions")}` : "");
}

function showFilters() {
  const totals = view.totals ?? { count: 0, types: {}, sessions: {}, tags: {} };
  $("filters").hidden = view.agent === null || (totals.count === 0 && !filtered());
  $("reset").hidden = !filtered() && view.hits === null;
  choices("type", "All types", totals.types);
  choices("session", "All sessions", totals.sessions);
  choices("tag", "All tags", totals.tags);
}

function choices(id, all, counts) {
  const chosen = $(id).value, names = Object.keys(counts).sort((a, b) => counts[b] - counts[a]).slice(0, MOST_CHOICES);
  if (chosen && !names.includes(chosen)) names.unshift(chosen);
  $(id).replaceChildren(...["", ...names].map(name => {
    const option = make("option", "", name ? `${name} (${number(counts[name] ?? 0)})` : all);
    option.value = name;
    return option;
  }));
  $(id).value = chosen;
  $(id).parentElement.hidden = names.length === 0;
}

function select(id, value) {
  if ($(id).options && value) $(id).append(Object.assign(make("option", "", value), { value }));
  $(id).value = value;
}

function only(id, value) {
  select(id, value);
  run(loadHere());
}

function showEmpty(count) {
  $("empty").hidden = count > 0;
  if (count > 0) return;
  const alike = view.unknown === null ? [] : nearest(view.unknown);
  const words = view.hits !== null ? "Nothing in this memory answers that. Ask with other words, or show all." : filtered() ? "Nothing fits these filters." : alike.length ? "Agents with a similar name:" : "Add the first memory here, or from a terminal:";
  $("empty").replaceChildren(make("p", "", words));
  for (const name of alike) $("empty").append(button("quiet", name, () => chooseAgent(name)));
  if (view.hits !== null || filtered() || alike.length) return;
  const command = make("code", "", `kronmem remember 'Deploys happen on Tuesdays' --url ${location.origin} --agent ${quoted(view.agent ?? view.unknown ?? "demo")}`);
  const copied = button("quiet", "Copy", () => copy(command, copied), "Copy the command");
  $("empty").append(command, copied);
}

// As one word of a POSIX shell.
const quoted = text => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

function row(hit) {
  const memory = hit.memory, item = make("li"), buttons = make("div", "row-buttons"), said = memory.content.slice(0, 80);
  const cut = hit.excerpt && hit.excerpt !== memory.content;
  item.tabIndex = -1;
  item.dataset.id = memory.id;
  item.onclick = event => { if (!event.target.closest("button") && !getSelection().toString()) openDrawer(hit); };
  buttons.append(button("details", "Details", () => openDrawer(hit), `Details: ${said}`), button("forget", "Forget", () => forget(memory), `Forget: ${said}`));
  item.append(make("p", "text", cut ? `… ${hit.excerpt} …` : memory.content), buttons, facts(memory));
  if (hit.similarity !== undefined) item.append(score(hit));
  return item;
}

function facts(memory) {
  const line = make("div", "facts");
  line.append(kind(memory.memory_type), when(memory.created_at));
  if (memory.pinned) line.append(make("span", "", "pinned"));
  if (memory.updated_at) line.append(make("span", "", "edited"));
  if (memory.expires_at) {
    const { soon, text } = lifetime(memory);
    line.append(make("span", soon ? "soon" : "", text));
  }
  if (memory.session_id) line.append(make("span", "", `session ${memory.session_id}`));
  for (const tag of memory.tags) line.append(make("span", "tag", tag));
  return line;
}

function score(hit) {
  const block = make("div", "score"), bar = make("div", "bar");
  const { words, meaning, speaker } = hit.explanation ?? { words: hit.similarity, meaning: 0, speaker: 1 };
  for (const [name, value] of [["words", words], ["meaning", meaning]]) {
    const piece = make("span", name);
    piece.style.width = `${100 * Math.min(value * speaker, 1)}%`;
    bar.append(piece);
  }
  bar.setAttribute("aria-hidden", "true");
  block.setAttribute("role", "group");
  block.setAttribute("aria-label", "Similarity");
  block.append(make("b", "", hit.similarity.toFixed(2)), bar, make("span", "parts", `similarity${explained(hit)}`));
  return block;
}
