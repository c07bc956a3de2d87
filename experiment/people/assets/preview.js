// Choosers, the participant's screen in its own proportions, the model's prompt beside it, and a look at the files each second.

const WIDTH = 1366;
const HEIGHT = 768;
const EVERY_MS = 1000;
const KINDS = {
  consent: "Consent",
  device: "Device check",
  questions: "Questions",
  full_screen: "Full screen",
  screen_size: "Size of the screen",
  instructions: "Instructions",
  practice: "Practice",
  block: "Trial",
  break: "Break",
  debrief: "Debrief",
};
const { stamp, choices } = JSON.parse(document.getElementById("preview-config").textContent);
const by = (id) => document.getElementById(id);
const kept = new URLSearchParams(location.hash.slice(1));
const now = { list: Number(kept.get("list")) || choices.lists[0], place: Number(kept.get("place")) || 0, variant: Number(kept.get("variant")) || 1 };

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function rows(list = now.list) {
  return choices.screens[String(list)] ?? [];
}

function current() {
  return rows()[now.place] ?? rows()[0];
}

function fill(id, options, chosen) {
  by(id).replaceChildren(...options.map(([value, words]) => make("option", { value: String(value) }, words)));
  by(id).value = String(chosen);
  by(id).disabled = options.length < 2;
}

function screenName(row) {
  if (row.trial === null) return KINDS[row.kind] ?? row.kind;
  return `${KINDS[row.kind]} ${row.number}${row.step ? `, ${row.step}` : ""}`;
}

function unique(values) {
  return [...new Set(values)];
}

function drawChoosers() {
  const row = current();
  const all = choices.lists.flatMap((list) => rows(list));
  const items = unique(all.filter((one) => one.trial !== null).map((one) => one.item));
  const conditions = unique(all.filter((one) => one.item === row.item && one.trial !== null).map((one) => one.condition)).sort();
  fill("list", choices.lists.map((list) => [list, String(list)]), now.list);
  fill("screen", rows().map((one, place) => [place, screenName(one)]), now.place);
  fill("item", row.trial === null ? [["", "–"], ...items.map((item) => [item, item])] : items.map((item) => [item, item]), row.item ?? "");
  fill("condition", row.trial === null ? [["", "–"]] : conditions.map((one) => [one, one || "–"]), row.condition ?? "");
  fill("variant", Array.from({ length: choices.variants }, (_, n) => [n + 1, String(n + 1)]), now.variant);
  by("back").disabled = now.place === 0;
  by("next").disabled = now.place === rows().length - 1;
}

// The list in which an item stands in a condition; the present list where it does.
function find(item, condition) {
  const lists = [now.list, ...choices.lists.filter((list) => list !== now.list)];
  for (const list of lists) {
    const place = rows(list).findIndex((one) => one.item === item && (condition === null || one.condition === condition));
    if (place >= 0) return { list, place };
  }
  return {};
}

function query(row) {
  const given = { list: now.list, variant: now.variant, screen: row.screen, ...(row.trial === null ? {} : { trial: row.trial }) };
  return new URLSearchParams(given).toString();
}

function drawTokens(tokens) {
  const shown = tokens.map((token, place) => {
    const text = token.replaceAll("\n", "⏎\n").replaceAll(" ", "·");
    return make("span", { class: place % 2 ? "token odd" : "token" }, text);
  });
  return make("pre", { class: "tokens" }, ...shown);
}

async function drawPrompt(row) {
  const reply = await fetch(`/prompt.json?${query(row)}`);
  if (row !== current()) return;
  const told = reply.ok ? await reply.json() : null;
  const parts = [];
  if (told === null) parts.push(make("p", { class: "problem" }, "The prompt could not be made."));
  else if (told.none) {
    const words = row.kind === "instructions" ? "Models read the instructions at the head of every prompt." : "Models do not meet this screen.";
    parts.push(make("p", { class: "quiet" }, words));
  } else {
    for (const { role, content } of told.messages) {
      parts.push(make("div", { class: "message" }, make("p", { class: "role" }, role), make("pre", {}, content)));
    }
    parts.push(
      make("p", { class: "scored" }, told.labels ? "Scored answers: " : told.is_read ? "Nothing is asked: of a local model, the surprisal of each part is kept." : "The answer is generated text.", ...(told.labels ?? []).map((label) => make("code", {}, label))),
    );
    if (told.answer !== null) parts.push(make("p", { class: "scored" }, "Right answer: ", make("code", {}, String(told.answer))));
    if (told.tokens) {
      parts.push(make("h3", {}, `The whole text in ${told.tokens.length} tokens of ${told.model}`), drawTokens(told.tokens));
    }
  }
  by("prompt").replaceChildren(...parts);
}

function draw() {
  now.place = Math.min(Math.max(0, now.place), rows().length - 1);
  const row = current();
  history.replaceState(null, "", `#${new URLSearchParams(now)}`);
  drawChoosers();
  // replace, not assign: the back button leaves the preview instead of walking through its screens
  by("participant").contentWindow.location.replace(`/screen?${query(row)}`);
  void drawPrompt(row);
}

function go(change) {
  Object.assign(now, change);
  draw();
}

function fit() {
  const frame = by("participant");
  const room = frame.parentElement;
  const scale = Math.min(1, room.clientWidth / WIDTH);
  frame.style.width = `${WIDTH}px`;
  frame.style.height = `${HEIGHT}px`;
  frame.style.transform = `scale(${scale})`;
  room.style.height = `${HEIGHT * scale}px`;
}

async function watch() {
  try {
    const told = await (await fetch("/stamp.json")).json();
    if (told.stamp !== stamp) return location.reload();
    by("note").textContent = "Nothing is stored. Saving a file of the study shows it anew.";
  } catch {
    by("note").textContent = "The preview has ended. Start it again with wrods preview.";
  }
  setTimeout(watch, EVERY_MS);
}

if (by("participant")) {
  new ResizeObserver(fit).observe(by("participant").parentElement);
  fit();
  by("list").addEventListener("change", () => {
    const row = current();
    const list = Number(by("list").value);
    const place = rows(list).findIndex((one) => one.item === row.item && one.kind === row.kind && row.trial !== null);
    go({ list, place: place >= 0 ? place : now.place });
  });
  by("screen").addEventListener("change", () => go({ place: Number(by("screen").value) }));
  by("item").addEventListener("change", () => by("item").value && go(find(by("item").value, null)));
  by("condition").addEventListener("change", () => go(find(by("item").value, by("condition").value)));
  by("variant").addEventListener("change", () => go({ variant: Number(by("variant").value) }));
  by("back").addEventListener("click", () => go({ place: now.place - 1 }));
  by("next").addEventListener("click", () => go({ place: now.place + 1 }));
  draw();
}
void watch();
