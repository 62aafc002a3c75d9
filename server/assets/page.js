// Follows the journal: whenever something about leadership is recorded the rows are read again, at most once a second.
const rows = document.getElementById("rows");
const sequence = document.getElementById("sequence");
const state = document.getElementById("state");
let waiting = false;

function cell(tag, label, text, name) {
  const element = document.createElement(tag);
  element.dataset.label = label;
  if (tag === "th") element.scope = "row";
  const inner = name ? element.appendChild(document.createElement("span")) : element;
  if (name) inner.className = "word " + name;
  inner.textContent = text;
  return element;
}

function show(r) {
  const row = document.createElement("tr");
  const holder = cell("td", "Holder", r.candidate || "nobody");
  if (r.epoch) holder.append(" ", Object.assign(document.createElement("small"), { textContent: "epoch " + r.epoch }));
  const behind = (r.targets || []).filter((t) => t.state !== "in-sync").map((t) => t.name + " " + t.state);
  row.append(
    cell("th", "Component", r.group + "/" + r.component),
    cell("td", "State", r.phase, r.phase),
    holder,
    cell("td", "Shown to clients", r.leader ? r.leader.address : "nothing"),
    cell("td", "Remarks", [...(r.alerts || []), ...behind].join(", ")));
  return row;
}

async function refresh() {
  waiting = false;
  const answer = await fetch("/v1/groups?limit=200");
  if (!answer.ok) throw new Error("the server answered " + answer.status);
  const page = await answer.json();
  sequence.textContent = page.sequence;
  const all = page.groups.flatMap((g) => g.components);
  if (all.length > 0) rows.replaceChildren(...all.map(show));
}

function later() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => refresh().catch((e) => { state.title = e.message; }), 300);
}

const source = new EventSource("/v1/watch");
source.onmessage = later;
source.onopen = () => { state.dataset.live = "yes"; later(); };
