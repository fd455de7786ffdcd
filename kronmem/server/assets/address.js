// The place is in the address: agent, question, filters and the open memory. Back, forward and links lead there.

function place() {
  const given = { agent: view.agent ?? view.unknown, q: view.asked, ...Object.fromEntries(FILTERS.map(id => [id, $(id).value])) };
  return new URLSearchParams(Object.entries(given).filter(([, value]) => value));
}

function address() {
  const here = place();
  if (shown) here.set("memory", shown.memory.id);
  return `#${here}`;
}

function visit() {
  if (address() !== (location.hash || "#")) history.pushState(null, "", address());
}

// Show what the address names; the service is asked for what differs from what is shown.
async function follow(anew) {
  if (!mayLeave()) return visit();
  const wanted = new URLSearchParams(location.hash.slice(1)), id = wanted.get("memory");
  wanted.delete("memory");
  if (anew || wanted.toString() !== place().toString()) await arrive(wanted);
  const hit = id && view.agent !== null && await named(id);
  if (hit) openDrawer(hit);
  else $("drawer").close();
}

async function arrive(wanted) {
  const agents = await call("GET", "/api/v1/agents"), name = wanted.get("agent") || null;
  const known = name === null || agents.some(agent => agent.name === name);
  Object.assign(view, { agents, agent: known ? name ?? agents[0]?.name ?? null : null, unknown: known ? null : name });
  $("question").value = wanted.get("q") ?? "";
  for (const id of FILTERS) select(id, wanted.get(id) ?? "");
  view.limit = HITS;
  showAgents();
  await load();
  history.replaceState(null, "", location.hash || address());
}

async function named(id) {
  const shownAlready = [...(view.hits ?? []), ...view.memories.map(memory => ({ memory }))].find(hit => hit.memory.id === id);
  return shownAlready ?? { memory: await call("GET", `${agentPath()}/memories/${encodeURIComponent(id)}`) };
}

addEventListener("hashchange", () => run(follow(false)));
