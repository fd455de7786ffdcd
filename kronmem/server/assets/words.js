// Numbers and times as people read them.

const DAY = 86400000;
const KNOWN = ["fact", "preference", "decision", "context", "temporary", "interaction", "episodic", "semantic", "procedural"];

const number = count => count.toLocaleString("en");
const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;
const memories = count => plural(count, "memory", "memories");

function span(time) {
  for (const [name, length] of [["year", 365 * DAY], ["month", 30 * DAY], ["day", DAY], ["hour", DAY / 24], ["minute", 60000]]) {
    if (time >= length) return plural(Math.floor(time / length), name, `${name}s`);
  }
  return "less than a minute";
}

function when(iso) {
  const element = make("time", "", ago(Date.now() - new Date(iso)));
  element.dateTime = iso;
  element.title = new Date(iso).toLocaleString();
  return element;
}

const ago = time => time < 60000 ? "just now" : `${span(time)} ago`;

function lifetime(memory) {
  const left = new Date(memory.expires_at) - Date.now();
  return { soon: left < DAY, text: left > 0 ? `expires in ${span(left)}` : "expired" };
}

function kind(type) {
  const shown = make("span", "kind");
  shown.append(make("i", KNOWN.includes(type) ? `dot t-${type}` : "dot"), make("span", "", type));
  return shown;
}

// How a similarity came about: "= (words 0.50 + meaning 0.26) × speaker 0.80", where the service tells.
function explained(hit) {
  const parts = hit.explanation;
  if (!parts) return "";
  const sum = `words ${parts.words.toFixed(2)} + meaning ${parts.meaning.toFixed(2)}`;
  return parts.speaker === 1 ? ` = ${sum}` : ` = (${sum}) × speaker ${parts.speaker.toFixed(2)}`;
}
