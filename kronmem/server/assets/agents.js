// The agents: a list with its own scroll and a filter, the same for four or four thousand.

const SHOWN_AGENTS = 200;

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
  Object.assign(view, { agent: name, unknown: null, limit: HITS });
  openSide(false);
  showAgents();
  run(loadAll());
}

// The names that share the most pairs of letters with an unknown one.
function nearest(name) {
  const pairs = text => new Set([...text.toLowerCase()].map((letter, at, all) => letter + (all[at + 1] ?? "")));
  const own = pairs(name), shared = other => 2 * [...other].filter(pair => own.has(pair)).length / (own.size + other.size);
  const scored = view.agents.map(agent => [shared(pairs(agent.name)), agent.name]).filter(([likeness]) => likeness > 0.3);
  return scored.sort(([a], [b]) => b - a).slice(0, 5).map(([, found]) => found);
}

// On a small screen the agents lie over the page.
function openSide(open) {
  $("side").classList.toggle("open", open);
  $("choose").setAttribute("aria-expanded", String(open));
  for (const part of document.querySelectorAll("header, main")) part.inert = open;
  if (open) $("find-agent").focus();
}
