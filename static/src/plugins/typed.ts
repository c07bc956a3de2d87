/** A typed answer, whatever it answers: the field, its guard against help, the deadline, and what is recorded. */

import type { JsPsych } from "jspsych";
import { element } from "../dom";
import type { ExposureRecord } from "../generated/trials";
import { type MediaFile, timedPart, withMedia } from "../media";
import type { Messages } from "../messages";
import type { Exemplar } from "../procedure/plan";
import { Exposure } from "../timing/exposure";
import { type Style, studyLines, styled } from "./lines";
import { type EarlyRecord, MinimumTime, NOT_EARLY } from "./minimum";
import { fitScreen } from "./room";
import { plausibleTimes } from "./simulation";
import { captioned, exemplarList, keyButton, studyText, trialScreen } from "./stimulus";
import { isStroke, type TypingRecord, TypingWatch } from "./typing";

const NO_HELP = {
  autocomplete: "off",
  autocorrect: "off",
  autocapitalize: "off",
  spellcheck: "false",
  translate: "no",
  writingsuggestions: "false", // whole words offered by the browser
  "data-gramm": "false",
  "data-gramm_editor": "false",
  "data-enable-grammarly": "false",
  "data-lpignore": "true",
};

export interface TypedTrial {
  caption: string | null;
  /** Null where the question says it all: then the question is the stimulus. */
  text: string | null;
  lines: string[];
  ask: string | null;
  multiline: boolean;
  minimum_ms: number;
  time_limit_ms: number | null;
  /** What stands behind a button until it is asked for. */
  hint: string | null;
  /** Whether text may come from dictation, voice control or an on-screen keyboard. */
  assistive_input: boolean;
  exemplars: Exemplar[];
  media: MediaFile[];
  style: Style | null;
  language: string;
  items_language: string;
  messages: Messages;
}

export type TypedRecord = ExposureRecord & TypingRecord & EarlyRecord & { response_raw: string | null; hint_ms: number | null };

/** What jsPsych hands to a plugin of typed answers. */
interface Given {
  caption?: string | null;
  text?: string | null;
  lines?: string[] | null;
  ask?: string | null;
  multiline?: boolean;
  minimum_ms?: number | null;
  time_limit_ms?: number | null;
  hint?: string | null;
  assistive_input?: boolean;
  exemplars?: unknown[] | null;
  media?: unknown[] | null;
  style?: unknown;
  language?: string;
  items_language?: string | null;
  messages?: unknown;
}

/** What a plugin was given, with nothing left open. */
export function shownOf(trial: Given): TypedTrial {
  return {
    caption: trial.caption ?? null,
    text: trial.text ?? null,
    lines: trial.lines ?? [],
    ask: trial.ask ?? null,
    multiline: trial.multiline ?? false,
    minimum_ms: trial.minimum_ms ?? 0,
    time_limit_ms: trial.time_limit_ms ?? null,
    hint: trial.hint ?? null,
    assistive_input: trial.assistive_input ?? false,
    exemplars: (trial.exemplars ?? []) as Exemplar[],
    media: (trial.media ?? []) as MediaFile[],
    style: (trial.style ?? null) as Style | null,
    language: trial.language ?? "en",
    items_language: trial.items_language ?? trial.language ?? "en",
    messages: trial.messages as Messages,
  };
}

export async function typedAnswer(
  display: HTMLElement,
  trial: TypedTrial,
  kind: string,
  onLoad?: () => void,
): Promise<TypedRecord> {
  const { messages, language, items_language, multiline } = trial;
  const words = trial.text === null ? null : styled(studyLines(trial.text, trial.lines, items_language), trial.style);
  const text = withMedia(trial.media, words);
  if (text) text.id = "wrods-stimulus";
  const own = { class: text ? "ask" : "ask alone", for: "wrods-answer" };
  const label = trial.ask
    ? element("label", { ...own, lang: language, dir: "auto", translate: "no" }, trial.ask)
    : element("label", own, messages.your_answer);
  const described = text ? "wrods-stimulus wrods-hint" : "wrods-hint";
  const attributes = { id: "wrods-answer", lang: language, dir: "auto", "aria-describedby": described };
  const field = multiline
    ? element("textarea", { ...attributes, ...NO_HELP, rows: "4" })
    : element("input", { ...attributes, ...NO_HELP, type: "text" });
  const hint = element("p", { class: "hint", id: "wrods-hint", role: "status" });
  const button = keyButton(multiline ? ["control", "enter"] : ["enter"], messages, messages.done);
  const exemplars = exemplarList(trial.exemplars, items_language, messages);
  const item = captioned(trial.caption, text ?? label, language);
  const clue = trial.hint === null ? null : new Clue(trial.hint, language, messages);
  const actions = element("div", { class: "actions" }, button, clue?.button);
  const below = [text && label, field, hint, actions, clue?.words ?? null];
  const screen = trialScreen(kind, messages, { above: exemplars, item, below });

  const exposure = await Exposure.begin(display, screen, text ? timedPart(text) : label);
  field.focus({ preventScroll: true });
  clue?.offer(exposure, field);
  const minimum = holdClosed(field, button, exposure, trial.minimum_ms);
  onLoad?.();
  const refuse = (): void => void (hint.textContent = messages.no_pasting);
  const typing = new TypingWatch(field, exposure.onset, refuse, trial.assistive_input);
  const sent = await submission(field, button, exposure, trial.time_limit_ms, {
    multiline,
    emptyAgain: () => (hint.textContent = messages.empty_again),
  });
  const early = minimum.stop();
  const typed = typing.stop(sent);
  // What was typed until time ran out is an answer; nothing typed is none.
  const response_raw = sent === null && field.value.trim() === "" ? null : field.value;
  const times = await exposure.end(sent);
  return { ...times, ...typed, ...early, response_raw, hint_ms: clue?.askedAt ?? null };
}

/** Keep the field closed until the minimum time: keys struck before do nothing and are kept raw. */
function holdClosed(
  field: HTMLInputElement | HTMLTextAreaElement,
  button: HTMLButtonElement,
  exposure: Exposure,
  minimum_ms: number,
): MinimumTime {
  const isEarly = (now: number): boolean => now - exposure.onset < minimum_ms;
  field.readOnly = true;
  const minimum = new MinimumTime(exposure, minimum_ms, [field, button], isEarly, () => (field.readOnly = false));
  field.addEventListener("keydown", (event) => {
    const stroke = event as KeyboardEvent;
    if (!field.readOnly || stroke.repeat || !isStroke(stroke) || stroke.timeStamp < exposure.onset) return;
    minimum.note(stroke, stroke.key);
  });
  return minimum;
}

/** A hint behind a button; the first time it is asked for is kept, in ms from the onset. */
class Clue {
  askedAt: number | null = null;
  readonly button: HTMLButtonElement;
  readonly words = element("p", { class: "clue", id: "wrods-clue", role: "status" });

  constructor(
    private readonly hint: string,
    private readonly language: string,
    messages: Messages,
  ) {
    const state = { class: "quiet", type: "button", "aria-expanded": "false", "aria-controls": "wrods-clue" };
    this.button = element("button", state, messages.show_hint);
  }

  offer(exposure: Exposure, field: HTMLElement): void {
    this.button.addEventListener("click", (event) => {
      if (!exposure.accepts(event)) return;
      this.askedAt ??= event.timeStamp - exposure.onset;
      this.button.setAttribute("aria-expanded", "true");
      this.words.replaceChildren(studyText("span", this.hint, this.language, "words"));
      const screen = this.button.closest<HTMLElement>(".trial");
      if (screen) fitScreen(screen);
      field.focus({ preventScroll: true });
    });
  }
}

function submission(
  field: HTMLInputElement | HTMLTextAreaElement,
  button: HTMLButtonElement,
  exposure: Exposure,
  limit: number | null,
  how: { multiline: boolean; emptyAgain: () => void },
): Promise<Event | null> {
  return new Promise((resolve) => {
    const listening = new AbortController();
    const options = { signal: listening.signal };
    let askedAboutEmpty = false;
    const submit = (event: Event): void => {
      if (!exposure.accepts(event)) return;
      if (field.readOnly) return field.focus({ preventScroll: true });
      if (field.value.trim() === "" && !askedAboutEmpty) {
        askedAboutEmpty = true;
        how.emptyAgain();
        field.focus();
        return;
      }
      listening.abort();
      resolve(event);
    };
    const press = (event: KeyboardEvent): void => {
      if (event.key !== "Enter" || event.isComposing || (how.multiline && !event.ctrlKey && !event.metaKey)) return;
      event.preventDefault();
      submit(event);
    };
    field.addEventListener("keydown", (event) => press(event as KeyboardEvent), options);
    button.addEventListener("click", submit, options);
    exposure.atLimit(limit, () => {
      listening.abort();
      resolve(null);
    });
  });
}

/** What jsPsych's simulation types: a given text, after a while. */
export async function simulateTyped(
  jsPsych: JsPsych,
  trial: Given,
  text: string,
  mode: "data-only" | "visual",
  show: (display: HTMLElement) => Promise<TypedRecord>,
): Promise<TypedRecord> {
  const times = plausibleTimes(1200 + 120 * text.length, trial);
  const rt = times.rt ?? 0;
  if (mode === "visual") {
    const display = jsPsych.getDisplayElement();
    jsPsych.pluginAPI.setTimeout(() => typeInto(display, text), rt);
    return show(display);
  }
  const typed = { first_key_ms: 0.3 * rt, typing_ms: 0.7 * rt, paste_count: 0, keyless_chars: 0, key_log: [], insertions: [], composed_chars: 0 };
  return { ...times, ...typed, ...NOT_EARLY, hint_ms: null, response_raw: text };
}

/** Types as a person does, a key stroke a letter: what comes otherwise is taken back. */
function typeInto(display: HTMLElement, text: string): void {
  const field = display.querySelector<HTMLInputElement>("#wrods-answer");
  for (const key of field ? text : "") {
    field!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    field!.value += key;
    field!.dispatchEvent(new InputEvent("input", { inputType: "insertText", data: key, bubbles: true }));
  }
  display.querySelector<HTMLButtonElement>(".actions button")?.click();
}
