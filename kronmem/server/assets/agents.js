// The agents: a list with its own scroll and a filter, the same for four or four thousand.

const SHOWN_AGENTS = 200;

async function loadAgents() {
  view.agents = await call("GET", "/api/v1/agents");
  const wanted = new URLSearchParams(location.hash.slice(1)).get("agent");
  const names = new Set(view.agents.map(agent => agent.name));
  view.agent = [wanted, view.agent, view.agents[0]?.name].find(name => names.has(name)) ?? null;
  showAgents();
  await loadAgent();
}

function showAgents() {
  const wanted = $("find-agent").value.trim().toLowerCase();
  const fit = view.agents.filter(agent => agent.name.toLowerCase().includes(wanted));
  const shown = fit.slice(0, SHOWN_AGENTS), current = fit.find(agent => agent.name === view.agent);
  if (current && !shown.includes(current)) shown.unshift(current);
  $("agent-total").textContent = number(view.agents.length);
  $("agents").replaceChildren(...shown.map(agentRow));
  const rest = fit.length - shown.length;
  $("agents-rest").textContent = rest ? `${number(rest)} more: filter by name` : wanted && !fit.length ? "No agent with this in its name" : "";
  const marked = $("agents").querySelector("[aria-current=true]") ?? $("agents").querySelector("button");
  if (!marked) return;
  marked.tabIndex = 0;
  marked.scrollIntoView({ block: "nearest" });
}

function agentRow(agent) {
  const item = make("li"), choice = button("", undefined, () => chooseAgent(agent.name));
  choice.append(make("span", "", agent.name), make("span", "count", number(agent.memory_count)));
  choice.setAttribute("aria-current", String(agent.name === view.agent));
  choice.setAttribute("aria-label", `${agent.name}, ${memories(agent.memory_count)}`);
  choice.tabIndex = -1;
  item.append(choice);
  return item;
}

function chooseAgent(name) {
  view.agent = name;
  history.replaceState(null, "", `#agent=${encodeURIComponent(name)}`);
  openSide(false);
  showAgents();
  run(loadAgent());
}

// On a small screen the agents lie over the page.
function openSide(open) {
  $("side").classList.toggle("open", open);
  $("choose").setAttribute("aria-expanded", String(open));
  for (const part of document.querySelectorAll("header, main")) part.inert = open;
  if (open) $("find-agent").focus();
}
