// Follows the journal: whenever something about leadership is recorded the page is read again, at most once in 300 ms.
const state = document.getElementById("state");
let waiting = false;

async function refresh() {
  waiting = false;
  const answer = await fetch("/");
  if (!answer.ok) throw new Error("the server answered " + answer.status);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of ["main", "#sequence"]) {
    document.querySelector(part).replaceWith(page.querySelector(part));
  }
}

function later() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => refresh().catch((e) => { state.title = e.message; }), 300);
}

const source = new EventSource("/v1/watch");
source.onmessage = later;
source.onopen = () => { state.dataset.live = "yes"; later(); };
