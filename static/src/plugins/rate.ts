/** `wrods-rate`: a point of a scale, by a button or its digit key, or by a slider that has no handle until it is touched. */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { element } from "../dom";
import { rateFields, rateParameters, type RateRecord } from "../generated/trials";
import { keyName, struckKey } from "../keys";
import { type MediaFile, timedPart, withMedia } from "../media";
import type { Messages } from "../messages";
import type { Exemplar } from "../procedure/plan";
import { Exposure } from "../timing/exposure";
import { type Style, studyLines, styled } from "./lines";
import { MinimumTime, NOT_EARLY } from "./minimum";
import { exemplarParameters, pageParameters } from "./parameters";
import { plausibleTimes, type Simulated } from "./simulation";
import { slider } from "./slider";
import { captioned, exemplarList, keyButton, studyText, trialScreen } from "./stimulus";

const info = <const>{
  name: "wrods-rate",
  version,
  parameters: { ...rateParameters, ...pageParameters, ...exemplarParameters },
  data: rateFields,
};

type Info = typeof info;

export type RateData = RateRecord & Simulated;

/** Buttons beside each other in a narrow window; more stand in two rows. */
const MOST_IN_A_ROW = 9;

interface Answer {
  event: Event;
  point: string;
}

/** The controls of a scale: what stands on the screen, and how an answer is given. */
interface Scale {
  group: HTMLElement;
  controls: HTMLElement[];
  /** What takes the keys from the start. */
  focused?: HTMLElement;
  listen: (answer: (event: Event, point: string) => void, isTooEarly: (event: Event, point: string) => boolean, signal: AbortSignal) => void;
}

export class RatePlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<RateData> {
    const language = trial.language ?? "en";
    const itemsLanguage = trial.items_language ?? language;
    const messages = trial.messages as Messages;
    const text = trial.text ? styled(studyLines(trial.text, trial.lines ?? [], itemsLanguage), trial.style as Style | null) : null;
    const stimulus = withMedia((trial.media ?? []) as MediaFile[], text);
    const ask = trial.ask ? studyText("p", trial.ask, language, stimulus ? "ask" : "ask alone") : null;
    const scale = (trial.labels ?? []).length === 0 ? line(trial, messages) : buttons(trial, language, messages);
    scale.group.setAttribute("aria-label", trial.ask ?? messages.your_answer);
    const exemplars = exemplarList((trial.exemplars ?? []) as Exemplar[], itemsLanguage, messages);
    const item = captioned(trial.caption ?? null, stimulus ?? ask, language);
    const screen = trialScreen("rate", messages, { above: exemplars, item, below: [stimulus && ask, scale.group] });
    const exposure = await Exposure.begin(display, screen, stimulus ? timedPart(stimulus) : (ask ?? scale.group));
    const minimum = new MinimumTime(exposure, trial.minimum_ms ?? 0, scale.controls);
    (scale.focused ?? screen).focus({ preventScroll: true });
    onLoad?.();

    const given = await new Promise<Answer | null>((resolve) => {
      const listening = new AbortController();
      const isTooEarly = (event: Event, point: string): boolean => !exposure.accepts(event) || minimum.refuses(event, point);
      const answer = (event: Event, point: string): void => {
        listening.abort();
        resolve({ event, point });
      };
      scale.listen(answer, isTooEarly, listening.signal);
      exposure.atLimit(trial.time_limit_ms ?? null, () => {
        listening.abort();
        resolve(null);
      });
    });
    const early = minimum.stop();
    const times = await exposure.end(given?.event ?? null);
    return { ...times, ...early, response_raw: given?.point ?? null };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<RateData> {
    const labels = trial.labels ?? [];
    const index = Math.floor(Math.random() * labels.length);
    const point = labels[index] ?? (trial.from + (trial.to - trial.from) * Math.random()).toFixed(trial.decimals ?? 0);
    const times = plausibleTimes(1500, trial);
    if (mode === "visual") {
      const display = this.jsPsych.getDisplayElement();
      this.jsPsych.pluginAPI.setTimeout(() => give(display, point, index), times.rt ?? 0);
      return this.trial(display, trial, onLoad).then((data) => ({ ...data, simulated: true }));
    }
    onLoad?.();
    return Promise.resolve({ ...times, ...NOT_EARLY, response_raw: point, simulated: true });
  }
}

function buttons(trial: TrialType<Info>, language: string, messages: Messages): Scale {
  const labels = trial.labels ?? [];
  const keys = trial.keys ?? [];
  const meanings = new Map([[0, trial.low], [labels.length - 1, trial.high]]);
  const made = labels.map((label, index) => {
    const key = keys[index];
    const isPlain = key === undefined || keyName(key) === label.toLowerCase();
    const button = keyButton(isPlain ? [] : [key], messages, studyText("span", label, language, "label"));
    if (isPlain && key !== undefined) button.setAttribute("aria-keyshortcuts", keyName(key));
    const meaning = meanings.get(index);
    if (meaning) button.setAttribute("aria-label", `${label}: ${meaning}`);
    return button;
  });
  const [low, high] = (["low", "high"] as const).map((end) => trial[end] && studyText("span", trial[end], language, `end ${end}`));
  const points = element("div", { class: "points" }, ...made);
  const isLong = made.length > MOST_IN_A_ROW;
  points.style.setProperty("--in-a-row", String(isLong ? Math.ceil(made.length / 2) : made.length));
  const isNamed = labels.some((label) => !/^-?\d+$/.test(label));
  const group = element("div", { class: isNamed ? "rating named" : "rating", role: "group" }, low, points, high);
  const listen: Scale["listen"] = (answer, isTooEarly, signal) => {
    const choose = (event: Event, index: number): void => {
      const point = labels[index] ?? "";
      if (!isTooEarly(event, point)) answer(event, point);
    };
    const press = (event: KeyboardEvent): void => {
      const index = struckKey(event, keys);
      if (index < 0) return;
      event.preventDefault();
      choose(event, index);
    };
    document.addEventListener("keydown", press, { capture: true, signal });
    for (const [index, button] of made.entries()) {
      button.addEventListener("click", (event) => choose(event, index), { signal });
    }
  };
  return { group, controls: made, listen };
}

/** A line that is given, once it is touched, with the button or Enter. */
function line(trial: TrialType<Info>, messages: Messages): Scale {
  const decimals = trial.decimals ?? 0;
  const { from, to } = trial;
  const { element: shown, input, value } = slider("wrods-rating", { from, to, low: trial.low ?? null, high: trial.high ?? null }, messages.slider_hint);
  input.step = String(10 ** -decimals);
  input.setAttribute("aria-label", trial.ask ?? messages.your_answer);
  const hint = element("p", { class: "hint" }, messages.slider_hint);
  const done = keyButton(["enter"], messages, messages.done);
  done.setAttribute("aria-disabled", "true");
  done.classList.add("held");
  const group = element("div", { class: "rating", role: "group" }, shown, hint, element("div", { class: "actions" }, done));
  const listen: Scale["listen"] = (answer, isTooEarly, signal) => {
    const point = (): string => Number(input.value).toFixed(decimals);
    const hold = (event: Event): void => {
      if (value() !== null || !isTooEarly(event, point())) return;
      event.stopPropagation();
      input.value = String((from + to) / 2); // a press before the minimum time moves nothing
    };
    const open = (): void => {
      if (value() === null) return;
      done.removeAttribute("aria-disabled");
      done.classList.remove("held");
      hint.style.visibility = "hidden"; // nothing moves
    };
    const submit = (event: Event): void => {
      if (value() === null) input.focus({ preventScroll: true });
      else if (!isTooEarly(event, point())) answer(event, point());
    };
    const press = (event: KeyboardEvent): void => {
      if (event.key !== "Enter" || event.isComposing || event.target === done) return;
      event.preventDefault();
      submit(event);
    };
    for (const kind of ["input", "pointerup", "click"]) shown.addEventListener(kind, hold, { capture: true, signal });
    for (const kind of ["input", "change"]) input.addEventListener(kind, open, { signal });
    done.addEventListener("click", submit, { signal });
    document.addEventListener("keydown", press, { signal });
  };
  return { group, controls: [input], focused: input, listen };
}

/** Answers as a reader does, for jsPsych's simulation. */
function give(display: HTMLElement, point: string, index: number): void {
  const input = display.querySelector<HTMLInputElement>(".rating input");
  if (!input) return display.querySelectorAll<HTMLButtonElement>(".rating button")[index]?.click();
  input.value = point;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  display.querySelector<HTMLButtonElement>(".rating .actions button")?.click();
}
