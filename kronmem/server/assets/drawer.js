// One memory beside the list: all of it, its history, and the form that changes it or adds another.

let shown = null;
let begun = ""; // the fields of the form as they were when it was opened

const entered = () => JSON.stringify([...$("editor").elements].map(one => one.type === "checkbox" ? one.checked : one.value));
const unsaved = () => $("drawer").open && !$("editor").hidden && entered() !== begun;

function mayLeave() {
  if (unsaved() && !confirm("This memory has changes that are not saved. Discard them?")) return false;
  begun = entered(); // asked once
  return true;
}

function closeDrawer() {
  if (mayLeave()) $("drawer").close();
}

function openDrawer(hit) {
  shown = hit;
  const memory = hit.memory;
  $("drawer-title").textContent = "Memory";
  $("details").hidden = false;
  $("editor").hidden = true;
  $("full").textContent = memory.content;
  $("pin").textContent = memory.pinned ? "Unpin" : "Pin";
  $("facts").replaceChildren(...described(memory));
  $("score-part").hidden = hit.similarity === undefined;
  if (hit.similarity !== undefined) $("score-text").textContent = `Similarity ${hit.similarity.toFixed(2)}` + explained(hit);
  $("metadata").textContent = JSON.stringify(memory.metadata, null, 2);
  $("history").replaceChildren();
  if (!$("drawer").open) $("drawer").showModal();
  $("drawer-title").focus();
  visit();
  run(showHistory(memory));
}

function described(memory) {
  const id = make("code", "", memory.id), copied = button("small", "Copy", () => copy(id, copied), "Copy the id");
  const rows = [["Id", id, copied], ["Type", kind(memory.memory_type)]];
  if (memory.session_id) rows.push(["Session", memory.session_id, button("small", "Only this", () => { $("drawer").close(); only("session", memory.session_id); }, "Show only this session")]);
  if (memory.tags.length) rows.push(["Tags", memory.tags.join(", ")]);
  if (memory.key) rows.push(["Key", memory.key]);
  if (memory.role) rows.push(["Said by", memory.role]);
  rows.push(["Stored", new Date(memory.created_at).toLocaleString()]);
  if (memory.updated_at) rows.push(["Edited", new Date(memory.updated_at).toLocaleString()]);
  if (memory.expires_at) rows.push(["Expires", new Date(memory.expires_at).toLocaleString()]);
  if (memory.pinned) rows.push(["Pinned", "yes, it never expires"]);
  rows.push(["Recalled", plural(memory.access_count, "time", "times")]);
  return rows.flatMap(([name, ...values]) => {
    const value = make("dd");
    value.append(...values);
    return [make("dt", "", name), value];
  });
}

// Without a clipboard (plain http) the text is selected, ready to be copied by hand.
async function copy(source, pressed) {
  const done = await navigator.clipboard?.writeText(source.textContent).then(() => true, () => false);
  if (!done) getSelection().selectAllChildren(source);
  pressed.textContent = done ? "Copied" : "Selected";
}

async function showHistory(memory) {
  const { memories: texts } = await call("GET", `${agentPath()}/memories/${encodeURIComponent(memory.id)}/history`);
  if (shown?.memory.id !== memory.id) return;
  $("history").replaceChildren(...texts.map((one, at) => {
    const item = make("li");
    const date = new Date(one.updated_at ?? one.created_at).toLocaleString();
    item.append(make("time", "", at === 0 ? `Now, since ${date}` : `From ${date}`), make("p", "text", one.content));
    return item;
  }));
}

// Changing and adding

const commas = text => [...new Set(text.split(",").map(tag => tag.trim()).filter(Boolean))];

function edit(memory) {
  $("drawer-title").textContent = memory ? "Edit the memory" : view.agent === null ? "Add a memory" : `Add a memory to ${view.agent}`;
  $("details").hidden = true;
  $("editor").hidden = false;
  $("only-new").hidden = Boolean(memory);
  $("only-first").hidden = view.agent !== null;
  $("edit-agent").value = view.agent ?? view.unknown ?? "";
  $("edit-wrong").textContent = "";
  $("edit-content").value = memory?.content ?? "";
  $("edit-type").value = memory?.memory_type ?? "fact";
  $("edit-tags").value = memory?.tags.join(", ") ?? "";
  $("edit-session").value = memory ? "" : $("session").value;
  $("edit-key").value = $("edit-ttl").value = "";
  $("ttl-label").firstChild.textContent = memory ? "Expires after days, 0 for never" : "Expires after days";
  $("edit-pinned").checked = memory?.pinned ?? false;
  $("edit-metadata").value = memory ? JSON.stringify(memory.metadata) : "{}";
  $("known-types").replaceChildren(...KNOWN.map(type => Object.assign(make("option"), { value: type })));
  begun = entered();
  if (!$("drawer").open) $("drawer").showModal();
  $(view.agent === null && !view.unknown ? "edit-agent" : "edit-content").focus();
}

function written() {
  const metadata = JSON.parse($("edit-metadata").value.trim() || "{}");
  if (metadata === null || typeof metadata !== "object" || Array.isArray(metadata)) throw new Error("it is not an object");
  const given = { content: $("edit-content").value, memory_type: $("edit-type").value.trim(), tags: commas($("edit-tags").value), metadata, pinned: $("edit-pinned").checked };
  if ($("edit-ttl").value !== "") given.ttl_days = Number($("edit-ttl").value);
  return given;
}

async function save() {
  let given;
  try {
    given = written();
  } catch (error) {
    $("edit-wrong").textContent = `The metadata is not a JSON object like {"source": "ada"}: ${error.message}`;
    return $("edit-metadata").focus();
  }
  const memory = shown?.memory;
  $("edit-wrong").textContent = "";
  try {
    if (memory) await change(memory, different(memory, given), "Saved");
    else await add(given);
  } catch (error) {
    $("edit-wrong").textContent = error.message;
    return;
  }
  $("drawer").close();
  run(changed());
}

// Only the fields that differ are sent: a tag with a comma in it survives an edit of the text.
function different(memory, given) {
  const kept = { ...given };
  if (given.tags.join(", ") === memory.tags.join(", ")) delete kept.tags;
  for (const name of ["content", "memory_type", "metadata", "pinned"]) if (JSON.stringify(given[name]) === JSON.stringify(memory[name])) delete kept[name];
  return kept;
}

async function change(memory, fields, words) {
  if (Object.keys(fields).length === 0) return;
  const path = `${agentPath()}/memories/${encodeURIComponent(memory.id)}/update`;
  await call("POST", path, fields);
  const former = Object.fromEntries(Object.keys(fields).filter(name => name !== "ttl_days").map(name => [name, memory[name]]));
  // The service counts lifetimes in whole days, so the undo of a pin or of a new lifetime gives the started day back.
  if (fields.pinned !== undefined || fields.ttl_days !== undefined) former.ttl_days = memory.expires_at && !memory.pinned ? Math.max(Math.ceil((new Date(memory.expires_at) - Date.now()) / DAY), 1) : 0;
  toast(`${words}: “${memory.content.slice(0, 50)}”`, async () => {
    await call("POST", path, former);
    await changed();
  });
}

async function add(given) {
  const name = $("edit-agent").value.trim(), agent = `/api/v1/agents/${encodeURIComponent(name)}`, session = $("edit-session").value.trim(), key = $("edit-key").value.trim();
  if (session) given.session_id = session;
  if (key) given.key = key;
  if (given.ttl_days === 0) delete given.ttl_days;
  const stored = await call("POST", `${agent}/${key ? "memories/upsert" : "remember"}`, given);
  Object.assign(view, { agent: name, unknown: null });
  const words = stored.deduplicated ? "This memory was there already" : `Added: “${stored.content.slice(0, 50)}”`;
  toast(words, stored.deduplicated || key ? null : async () => {
    await call("DELETE", `${agent}/memories/${encodeURIComponent(stored.id)}`);
    await changed();
  });
}

$("add").onclick = () => { shown = null; edit(null); };
$("edit").onclick = () => edit(shown.memory);
$("editor").onsubmit = event => { event.preventDefault(); save(); };
$("cancel").onclick = () => { if (mayLeave()) shown ? openDrawer(shown) : $("drawer").close(); };
$("close").onclick = closeDrawer;
$("drawer").onclick = event => { if (event.target === $("drawer") && event.clientX < $("drawer").getBoundingClientRect().left) closeDrawer(); };
// Escape is taken as a key: a browser lets a page refuse only the first of its own `cancel` events.
$("drawer").onkeydown = event => { if (event.key === "Escape") { event.preventDefault(); closeDrawer(); } };
$("drawer").oncancel = event => { event.preventDefault(); closeDrawer(); };
addEventListener("beforeunload", event => { if (unsaved()) event.preventDefault(); });
$("drawer").addEventListener("close", () => {
  const item = [...$("list").children].find(one => one.dataset.id === shown?.memory.id);
  shown = null;
  visit();
  item ? focusRow(item) : $("add").focus();
});
$("pin").onclick = () => {
  const memory = shown.memory;
  $("drawer").close();
  run(change(memory, { pinned: !memory.pinned }, memory.pinned ? "Unpinned" : "Pinned").then(changed));
};
$("forget").onclick = () => {
  const memory = shown.memory;
  $("drawer").close();
  forget(memory);
};
