/** The fields of a screen of questions: one element a question, what was entered in it, and what is wrong with that. */

import { element } from "../dom";
import { fill, type Messages } from "../messages";
import type { Answer, Question } from "../procedure/plan";
import { slider } from "./slider";

export interface Field {
  question: Question;
  element: HTMLElement;
  /** What was entered, by the name of the question or of a matrix' rows; null for nothing. */
  answers: () => Record<string, Answer>;
  /** Put the focus where something is wrong. */
  focus: () => void;
  /** Say what is wrong with what was entered; true where nothing is. */
  check: () => boolean;
}

/** Up to how many options stand in the open; more are chosen from a list that unfolds. */
const OPEN_OPTIONS = 8;
const LONGEST_TEXT = 2000;

interface Parts {
  input: HTMLElement;
  first: HTMLElement;
  value: () => Answer;
  /** The rows of a matrix, in place of one value; `mark` shows that one still needs an answer. */
  rows?: { name: string; first: HTMLElement; value: () => Answer; mark: (isMissing: boolean) => void }[];
  /** What is wrong beyond nothing being entered. */
  wrong?: () => string | null;
  /** How its keys work, where they do so in a way of their own. */
  help?: HTMLElement;
  /** Whether the question is a label of one field, not the legend of several. */
  isSingle: boolean;
}

export function questionField(question: Question, place: number, language: string, messages: Messages): Field {
  const id = `wrods-question-${place}`;
  const parts = makeParts(question, id, language, messages);
  const ask = element("span", { lang: language, dir: "auto" }, question.ask);
  const optional = question.optional ? element("span", { class: "optional" }, ` ${messages.optional}`) : null;
  const problem = element("p", { class: "problem", id: `${id}-problem` });
  // A grid of many words reaches beyond the window: what is wrong is said above it, where the focus goes.
  const below = parts.help ? [parts.help, problem, parts.input] : [parts.input, problem];
  const shown = parts.isSingle
    ? element("div", { class: "question" }, element("label", { for: id }, ask, optional), parts.input, problem)
    : element("fieldset", { class: "question" }, element("legend", {}, ask, optional), ...below);
  const marked = parts.isSingle ? parts.first : shown;
  const missing = () => (question.optional ? [] : (parts.rows ?? []).filter((row) => row.value() === null));
  const check = (keepsRoom = false): boolean => {
    const value = parts.value();
    const isEmpty = parts.rows ? missing().length > 0 : value === null || (Array.isArray(value) && value.length === 0);
    for (const row of parts.rows ?? []) row.mark(missing().includes(row));
    const wrong = parts.wrong?.() ?? (isEmpty && !question.optional ? messages.answer_needed : null);
    // Nothing moves while the pointer is on its way to another question.
    problem.classList.toggle("mended", wrong === null && keepsRoom);
    if (wrong !== null || !keepsRoom) problem.textContent = wrong ?? "";
    if (wrong === null) {
      parts.first.removeAttribute("aria-invalid");
      marked.removeAttribute("aria-describedby");
    } else {
      if (parts.isSingle) parts.first.setAttribute("aria-invalid", "true");
      marked.setAttribute("aria-describedby", problem.id);
    }
    return wrong === null;
  };
  const checkAgain = (): void => {
    if (problem.textContent) check(true);
  };
  shown.addEventListener("change", checkAgain);
  const answers = (): Record<string, Answer> =>
    parts.rows ? Object.fromEntries(parts.rows.map((row) => [row.name, row.value()])) : { [question.name]: parts.value() };
  const focus = (): void => (missing()[0] ?? parts).first.focus();
  return { question, element: shown, answers, focus, check: () => check() };
}

function makeParts(question: Question, id: string, language: string, messages: Messages): Parts {
  const options = question.options ?? [];
  switch (question.type) {
    case "text":
      return textParts(id, language);
    case "number":
      return numberParts(question, id, messages);
    case "choice":
      return options.length > OPEN_OPTIONS ? listParts(options, id, messages) : pickParts("radio", options, id, "stacked");
    case "yes_no":
      return pickParts("radio", options, id, "beside");
    case "several":
      return pickParts("checkbox", options, id, "stacked");
    case "scale":
      return scaleParts(question, id);
    case "vocabulary":
      return vocabularyParts(options, id, language, messages);
    case "matrix":
      return matrixParts(question, id, language);
    case "slider": {
      const { low, high } = question;
      const line = slider(id, { from: question.from ?? 0, to: question.to ?? 100, low, high }, messages.slider_hint);
      const hint = element("p", { class: "keys" }, messages.slider_hint);
      line.element.addEventListener("change", () => (hint.style.visibility = "hidden")); // nothing moves
      return { input: element("div", {}, line.element, hint), first: line.input, isSingle: true, value: line.value };
    }
    default:
      throw new Error(`the plan asks a question of type "${(question as { type: string }).type}", which this page does not know`);
  }
}

function textParts(id: string, language: string): Parts {
  const limits = { maxlength: String(LONGEST_TEXT), autocomplete: "off", spellcheck: "false" };
  const input = element("input", { id, type: "text", lang: language, dir: "auto", ...limits });
  return { input, first: input, isSingle: true, value: () => input.value.trim() || null };
}

function numberParts({ from, to }: Question, id: string, messages: Messages): Parts {
  // A number field would take "e", step on the mouse wheel and say nothing of what it cannot read.
  const input = element("input", { id, type: "text", class: "number", inputmode: "decimal", autocomplete: "off", maxlength: "12" });
  const value = (): number | null => (input.value.trim() === "" ? null : readNumber(input.value));
  const wrong = (): string | null => {
    const given = value();
    if (given === null) return null;
    const isWithin = given >= (from ?? -Infinity) && given <= (to ?? Infinity); // NaN is not
    if (isWithin) return null;
    if (from !== null && to !== null) return fill(messages.number_between, { from, to });
    if (from !== null) return fill(messages.number_from, { from });
    return to !== null ? fill(messages.number_to, { to }) : messages.number_needed;
  };
  return { input, first: input, isSingle: true, value, wrong };
}

/** A number as people write it, with a point or a comma and in full-width or Arabic digits too; NaN for anything else. */
export function readNumber(written: string): number {
  const western = written.normalize("NFKC").replace(/[٠-٩۰-۹]/g, (digit) => String(digit.charCodeAt(0) & 0xf));
  const plain = western.trim().replace(/[,٫]/, ".");
  return /^[+-]?\d+(\.\d*)?$/.test(plain) ? Number(plain) : NaN;
}

function listParts(options: { value: string; label: string }[], id: string, messages: Messages): Parts {
  const blank = element("option", { value: "" }, messages.please_choose);
  const given = options.map((option) => element("option", { value: option.value }, option.label));
  const input = element("select", { id }, blank, ...given);
  return { input, first: input, isSingle: true, value: () => input.value || null };
}

type Pick = "radio" | "checkbox";

function pick(type: Pick, name: string, value: string, ...words: (Node | string)[]): { label: HTMLElement; input: HTMLInputElement } {
  const input = element("input", { type, name, value });
  return { input, label: element("label", { class: "pick" }, input, element("span", { dir: "auto" }, ...words)) };
}

function pickParts(type: Pick, options: { value: string; label: string }[], id: string, layout: string): Parts {
  const made = options.map((option) => pick(type, id, option.value, option.label));
  const input = element("div", { class: `picks ${layout}` }, ...made.map((one) => one.label));
  return { input, first: made[0]?.input ?? input, isSingle: false, value: () => picked(type, made) };
}

function picked(type: Pick, made: { input: HTMLInputElement }[]): Answer {
  const values = made.filter((one) => one.input.checked).map((one) => one.input.value);
  return type === "checkbox" ? values : (values[0] ?? null);
}

function scaleParts({ from, to, low, high }: Question, id: string): Parts {
  const [first, last] = [from ?? 1, to ?? 7];
  const made = Array.from({ length: last - first + 1 }, (_, index) => pick("radio", id, String(first + index), String(first + index)));
  const ends = [low, high].map((words) => (words ? element("span", { class: "end", dir: "auto" }, words) : null));
  if (low) made[0]!.input.setAttribute("aria-label", `${first}: ${low}`);
  if (high) made.at(-1)!.input.setAttribute("aria-label", `${last}: ${high}`);
  const steps = element("div", { class: "steps" }, ...made.map((one) => one.label));
  const input = element("div", { class: "scale" }, ends[0], steps, ends[1]);
  const value = (): number | null => {
    const chosen = picked("radio", made);
    return chosen === null ? null : Number(chosen);
  };
  return { input, first: made[0]!.input, isSingle: false, value };
}

/** Rows with the same points, each a group of its own for the keyboard and for screen readers. */
function matrixParts({ rows = [], options, low, high }: Question, id: string, language: string): Parts {
  const points = options ?? [];
  const isNumbered = points.every((point) => Number.isFinite(Number(point.label)));
  const heads = isNumbered && (low || high) ? points.map((_, index) => [low, high][[0, points.length - 1].indexOf(index)] ?? "") : null;
  const labels = heads ? points.map((point, index) => [point.label, heads[index]].filter(Boolean).join(": ")) : null;
  const made = rows.map(({ name, text }, place) => {
    const picks = points.map((point) => pick("radio", `${id}-${place}`, point.value, point.label));
    picks.forEach(({ input }, index) => labels && input.setAttribute("aria-label", labels[index]!));
    const words = element("span", { id: `${id}-${place}-text`, lang: language, dir: "auto" }, text);
    const group = { class: "row", role: "radiogroup", "aria-labelledby": words.id };
    const row = element("div", group, words, ...picks.map((one) => one.label));
    const mark = (isMissing: boolean): void => {
      row.classList.toggle("missing", isMissing);
      if (isMissing) row.setAttribute("aria-invalid", "true");
      else row.removeAttribute("aria-invalid");
    };
    return { name, row, first: picks[0]!.input, value: () => picked("radio", picks), mark };
  });
  const above = points.map((point, index) => element("span", { dir: "auto" }, heads ? heads[index] : point.label));
  const head = element("div", { class: "row head", "aria-hidden": "true" }, element("span"), ...above);
  const table = element("div", { class: `matrix${isNumbered ? " numbered" : ""}` }, head, ...made.map((one) => one.row));
  table.style.setProperty("--points", String(points.length));
  return { input: table, first: made[0]?.first ?? table, isSingle: false, value: () => null, rows: made };
}

/** Words in a grid, one stop of the Tab key for all of them; arrows go from word to word, the space bar marks. */
function vocabularyParts(options: { value: string; label: string }[], id: string, language: string, messages: Messages): Parts {
  const made = options.map((option) =>
    pick("checkbox", id, option.value, element("span", { lang: language, translate: "no" }, option.label)),
  );
  const inputs = made.map((one) => one.input);
  const grid = element("div", { class: "vocabulary" }, ...made.map((one) => one.label));
  const stopAt = (place: number): void => inputs.forEach((input, index) => (input.tabIndex = index === place ? 0 : -1));
  stopAt(0);
  grid.addEventListener("focusin", (event) => stopAt(Math.max(0, inputs.indexOf(event.target as HTMLInputElement))));
  grid.addEventListener("keydown", (event) => {
    const now = inputs.indexOf(document.activeElement as HTMLInputElement);
    const key = getComputedStyle(grid).direction === "rtl" ? (MIRRORED[event.key] ?? event.key) : event.key;
    const to = now < 0 ? undefined : goal(key, now, inputs.length, columnsOf(made.map((one) => one.label)));
    if (to === undefined) return;
    event.preventDefault(); // arrows must not scroll
    inputs[to]!.focus();
  });
  const help = element("p", { class: "keys", id: `${id}-keys` }, messages.vocabulary_keys);
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-describedby", help.id);
  return { input: grid, help, first: inputs[0] ?? grid, isSingle: false, value: () => picked("checkbox", made) };
}

/** Keys of a grid that runs from right to left. */
const MIRRORED: Record<string, string> = { ArrowRight: "ArrowLeft", ArrowLeft: "ArrowRight" };

/** Where a key leads in a grid of so many cells and columns; undefined for keys that lead nowhere. */
export function goal(key: string, now: number, count: number, columns: number): number | undefined {
  const moves: Record<string, number> = { ArrowRight: now + 1, ArrowLeft: now - 1, ArrowDown: now + columns, ArrowUp: now - columns };
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const to = moves[key];
  return to === undefined || to < 0 || to >= count ? (to === undefined ? undefined : now) : to;
}

function columnsOf(cells: HTMLElement[]): number {
  const top = cells[0]?.offsetTop;
  const next = cells.findIndex((cell) => cell.offsetTop !== top);
  return next < 0 ? cells.length : next;
}
