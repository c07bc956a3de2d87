// Keeps the live page up to date: asks every three seconds and redraws what changed.

const EVERY_MS = 3000;
const KINDS = { human: "People", simulated: "Simulated readers", model: "Models", baseline: "Baselines", held: "Held", pilot: "Pilots", excluded: "Excluded" };
const STATES = {
  finished: "finished", running: "running", interrupted: "interrupted", declined: "declined", stopped: "stopped by the participant", screened_out: "screened out",
  failed_practice: "failed practice", failed_checks: "failed checks",
  failed_comprehension: "failed comprehension questions", withdrawn: "withdrawn", timed_out: "timed out",
  returned: "returned", blocked: "not resumed", ended: "ended by an experimenter",
};
const COLLECTION = { open: "open", paused: "paused", closed: "closed" };
const SVG = "http://www.w3.org/2000/svg";
const chosen = new Map();
const heard = document.getElementById("heard");
let latest = null;
let now = new Date();
let etag = null;

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

function count(value) {
  return make("td", { class: value ? "number" : "number none" }, value ? String(value) : "–");
}

function ago(then) {
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 10) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return then.toLocaleDateString();
}

function clock(then) {
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return then.toDateString() === now.toDateString() ? time : `${then.toLocaleDateString()} ${time}`;
}

function replace(holder, nodes) {
  // a page that says the same is left alone, so that nothing in focus is lost and nothing is read out again
  const fresh = document.createElement("div");
  fresh.append(...nodes);
  if (holder.innerHTML !== fresh.innerHTML) holder.replaceChildren(...fresh.childNodes);
}

function drawCounts(section, study) {
  const counted = new Set(["finished", "running", "interrupted", "all"]);
  const rows = Object.entries(study.kinds).map(([kind, counts]) => {
    const early = Object.entries(counts).filter(([state]) => !counted.has(state));
    const sum = early.reduce((total, [, number]) => total + number, 0);
    const told = early.map(([state, number]) => `${STATES[state] ?? state} ${number}`).join(", ");
    const cell = count(sum);
    if (told) cell.append(make("span", { class: "quiet block" }, told));
    return make("tr", {}, make("td", {}, KINDS[kind] ?? kind), count(counts.finished), count(counts.running), count(counts.interrupted), cell);
  });
  if (rows.length === 0) rows.push(make("tr", {}, make("td", { colspan: "5", class: "quiet" }, "None yet")));
  replace(section.querySelector(".counts tbody"), rows);
  const wanted = section.querySelector(".wanted");
  wanted.hidden = study.wanted === null;
  if (study.wanted !== null) wanted.textContent = `${study.kinds.human?.finished ?? 0} of ${study.wanted} planned participants have finished.`;
}

// Lists are shown for the people of the study; where there are none yet, for whoever is there.
function shownGroup(study) {
  const filter = chosen.get(study.study) ?? "all";
  if (filter !== "all") return filter;
  return "human" in study.kinds ? "human" : (Object.keys(study.kinds)[0] ?? "human");
}

function drawLists(section, study) {
  const group = shownGroup(study);
  section.querySelector(".lists h3").textContent = `Lists: ${(KINDS[group] ?? group).toLowerCase()}`;
  const counts = study.lists.map((list) => list.groups[group] ?? {});
  const total = (one) => (one.finished ?? 0) + (one.running ?? 0) + (one.interrupted ?? 0);
  const most = Math.max(1, ...counts.map(total));
  const bars = study.lists.flatMap((list, place) => {
    const drawing = document.createElementNS(SVG, "svg");
    drawing.setAttribute("viewBox", `0 0 ${most} 1`);
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("aria-hidden", "true");
    let x = 0;
    for (const state of ["finished", "running", "interrupted"]) {
      const width = counts[place][state] ?? 0;
      const bar = document.createElementNS(SVG, "rect");
      for (const [key, value] of Object.entries({ x, y: 0, width, height: 1, class: `fill-${state}` })) bar.setAttribute(key, value);
      drawing.append(bar);
      x += width;
    }
    const { finished = 0, running = 0 } = counts[place];
    const told = make("span", { class: "told-counts" }, running ? `${finished} + ${running} running` : `${finished}`);
    return [make("span", { class: "name" }, `List ${list.list_id}`), make("div", { class: "stack" }, drawing, told)];
  });
  replace(section.querySelector(".bars"), bars);
}

function drawBeside(section, study) {
  const { state, by, since } = study.collection;
  const chip = section.querySelector(".mark.collection");
  chip.textContent = COLLECTION[state];
  chip.dataset.state = state;
  const words = {
    open: "New participants can begin.",
    paused: "No new participants can begin; sessions in progress continue.",
    closed: "The study is closed; condition means are visible.",
  }[state];
  section.querySelector(".collection-words").textContent = by ? `${words} Set by ${by}, ${clock(new Date(since))}.` : words;
  for (const button of section.querySelectorAll(".states button")) button.disabled = button.value === state;
  const rows = study.models.map((model) => {
    const tokens = (model.prompt_tokens ?? 0) + (model.completion_tokens ?? 0);
    const cost = model.cost_usd === null ? "–" : dollars(model.cost_usd);
    return make("tr", {}, make("td", {}, model.reader), count(model.sessions), count(tokens.toLocaleString()), make("td", { class: "number" }, cost));
  });
  section.querySelector(".models").hidden = rows.length === 0;
  section.querySelector(".no-models").hidden = rows.length > 0;
  replace(section.querySelector(".models tbody"), rows);
  const backups = section.querySelector(".backups");
  if (study.backups === null || study.backups.number === 0) backups.textContent = "None yet.";
  else {
    const [last] = study.backups.newest;
    const when = last?.at ? `, ${ago(new Date(last.at))}` : "";
    backups.textContent = `${study.backups.number} kept; the newest ${last ? `is ${last.file} (${size(last.bytes)}${when})` : "is gone"}.`;
  }
}

/** Cents from one dollar on, and of nothing; below a dollar three digits that say something. */
function dollars(amount) {
  const digits = amount === 0 || amount >= 1 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumSignificantDigits: 3 };
  return `$${amount.toLocaleString("en-US", digits)}`;
}

/** A file's size in the largest unit that leaves at least one of it. */
function size(bytes) {
  const [unit, of] = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, least]) => bytes >= least) ?? ["bytes", 1];
  const number = bytes / of;
  return `${number.toLocaleString("en-US", { maximumFractionDigits: number < 10 && of > 1 ? 1 : 0 })} ${unit}`;
}

function drawFilters(section, study) {
  const holder = section.querySelector(".filters");
  const kind = chosen.get(study.study) ?? "all";
  const total = Object.values(study.kinds).reduce((sum, counts) => sum + counts.all, 0);
  const wanted = [["all", `All ${total}`], ...Object.entries(study.kinds).map(([name, counts]) => [name, `${KINDS[name] ?? name} ${counts.all}`])];
  // Buttons are kept, so that the one in focus stays in focus.
  for (const [name, words] of wanted) {
    let button = holder.querySelector(`[data-kind="${name}"]`);
    if (!button) {
      button = make("button", { type: "button", "data-kind": name });
      button.addEventListener("click", () => {
        chosen.set(study.study, name);
        draw();
      });
      holder.append(button);
    }
    if (button.textContent !== words) button.textContent = words;
    button.setAttribute("aria-pressed", String(name === kind));
  }
  for (const button of [...holder.children]) {
    if (wanted.some(([name]) => name === button.dataset.kind)) continue;
    button.remove();
    if (button.dataset.kind === kind) chosen.delete(study.study);
  }
}

function needsReview(session) {
  const cell = make("td", {});
  if (session.awaits_review) cell.append(make("span", { class: "mark suspect", title: session.held }, "held for review"));
  else if (session.held) cell.append(make("span", { class: "mark", title: session.held }, "not paid"));
  for (const sign of session.signs) cell.append(make("span", { class: "mark suspect" }, sign));
  if (session.flags) cell.append(make("span", { class: "mark suspect" }, session.flags === 1 ? "1 flag" : `${session.flags} flags`));
  if (session.notes) cell.append(make("span", { class: "mark" }, session.notes === 1 ? "1 note" : `${session.notes} notes`));
  return cell;
}

function drawSessions(section, study) {
  const filter = chosen.get(study.study) ?? "all";
  const sessions = study.sessions.filter((session) => filter === "all" || session.group === filter);
  const rows = sessions.map((session) => {
    const done = Math.min(session.trials, session.planned ?? session.trials);
    const bar = session.planned ? make("progress", { max: session.planned, value: done, "aria-hidden": "true" }) : null;
    return make(
      "tr",
      {},
      make(
        "th",
        { scope: "row" },
        make("a", { href: section.dataset.page.replace("KEY", session.key) }, session.reader),
        session.participant ? make("span", { class: "quiet" }, ` (${session.participant})`) : null,
        session.kind === "human" ? null : make("span", { class: `mark ${session.kind}` }, session.kind),
        session.pilot ? make("span", { class: "mark pilot" }, "pilot") : null,
        session.group === "excluded" ? make("span", { class: "mark excluded" }, "excluded") : null,
      ),
      make("td", { class: "number" }, session.list === null ? "" : String(session.list)),
      make("td", {}, make("span", { class: `state ${session.state}`, title: session.reason }, STATES[session.state] ?? session.state)),
      make("td", {}, bar, make("span", { class: "number" }, `${session.trials} of ${session.planned ?? "?"}`)),
      make("td", {}, session.block ?? ""),
      make("td", {}, session.station ?? ""),
      make("td", {}, clock(new Date(session.started))),
      make("td", {}, ago(new Date(session.seen))),
      needsReview(session),
      make("td", {}, session.code ? make("code", {}, session.code) : ""),
    );
  });
  const body = section.querySelector(".sessions tbody");
  const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  replace(body, rows);
  if (focused) body.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  section.querySelector(".scroll").hidden = rows.length === 0;
  section.querySelector(".empty").hidden = rows.length > 0;
  const more = section.querySelector(".hidden-rows");
  more.hidden = study.hidden === 0;
  more.textContent = `${study.hidden} older sessions are not listed here; the download contains all of them.`;
}

function drawConcerns() {
  const nodes = latest.concerns.map((one) =>
    make("p", { class: one.stops_answers ? "concern stops" : "concern" }, make("strong", {}, one.study), " ", make("span", { class: "lines" }, one.words)),
  );
  replace(document.getElementById("concerns"), nodes);
}

function draw() {
  drawConcerns();
  for (const study of latest.studies) {
    const section = document.querySelector(`[data-study="${CSS.escape(study.study)}"]`);
    if (!section) continue;
    drawFilters(section, study);
    drawCounts(section, study);
    drawLists(section, study);
    drawBeside(section, study);
    drawSessions(section, study);
  }
}

async function refresh() {
  try {
    const headers = { Accept: "application/json", ...(etag ? { "If-None-Match": etag } : {}) };
    const reply = await fetch(document.body.dataset.source, { headers, cache: "no-store" });
    if (reply.status === 401) return location.reload();
    if (!reply.ok && reply.status !== 304) throw new Error(`HTTP ${reply.status}`);
    now = new Date(reply.headers.get("X-Wrods-Now") ?? Date.now());
    if (reply.status !== 304) {
      etag = reply.headers.get("ETag");
      latest = await reply.json();
    }
    draw();
    heard.removeAttribute("role"); // read out once, not every three seconds
    heard.textContent = `Up to date, ${now.toLocaleTimeString()}`;
  } catch {
    heard.setAttribute("role", "status");
    heard.textContent = "The server is not responding. Trying again …";
  }
  setTimeout(refresh, EVERY_MS);
}

for (const button of document.querySelectorAll("[data-confirm]"))
  button.addEventListener("click", (event) => {
    if (!confirm(button.dataset.confirm)) event.preventDefault();
  });

void refresh();
