/** `wrods-choose`: one of two or more labels, by key, click or touch; solved examples may stand above the item. */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { element } from "../dom";
import { chooseFields, chooseParameters, type ChooseRecord } from "../generated/trials";
import { library, type MediaFile, timedPart, withMedia } from "../media";
import { keyName, layoutOrder, struckKey } from "../keys";
import type { Messages } from "../messages";
import type { Exemplar } from "../procedure/plan";
import { Exposure } from "../timing/exposure";
import { type Style, studyLines, styled } from "./lines";
import { MinimumTime, NOT_EARLY } from "./minimum";
import { exemplarParameters, pageParameters, pictureParameters, setParameters } from "./parameters";
import { plausibleTimes, type Simulated } from "./simulation";
import { captioned, exemplarList, keyButton, studyText, trialScreen } from "./stimulus";

/** The key of a label that is given by waiting until time runs out (go/no-go). */
const NO_KEY = "none";

const info = <const>{
  name: "wrods-choose",
  version,
  parameters: { ...chooseParameters, ...pageParameters, ...exemplarParameters, ...pictureParameters, ...setParameters },
  data: chooseFields,
};

type Info = typeof info;

export type ChooseData = ChooseRecord & Simulated;

export class ChoosePlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<ChooseData> {
    const { screen, timed, buttons, done } = this.layOut(trial);
    const exposure = await Exposure.begin(display, screen, timed);
    const minimum = new MinimumTime(exposure, trial.minimum_ms ?? 0, buttons.filter((button) => button !== null));
    screen.focus({ preventScroll: true });
    onLoad?.();

    const chosen = await new Promise<{ event: Event; label: string } | null>((resolve) => {
      const listening = new AbortController();
      const give = (event: Event, label: string): void => {
        listening.abort();
        resolve({ event, label });
      };
      const answer = (event: Event, index: number): void => {
        if (!exposure.accepts(event) || minimum.refuses(event, trial.labels[index] ?? "")) return;
        if (done) tick(buttons, index, done);
        else give(event, trial.labels[index] ?? "");
      };
      const submit = (event: Event): void => {
        const ticked = trial.labels.filter((_, index) => isTicked(buttons[index]));
        if (ticked.length > 0 && exposure.accepts(event)) give(event, ticked.join(BETWEEN));
      };
      if (done) {
        const enter = (event: KeyboardEvent): void => {
          if (event.key !== "Enter" || event.isComposing) return;
          event.preventDefault(); // Enter ticks no button that has the focus
          submit(event);
        };
        document.addEventListener("keydown", enter, { capture: true, signal: listening.signal });
        done.addEventListener("click", submit, { signal: listening.signal });
      }
      const press = (event: KeyboardEvent): void => {
        const index = struckKey(event, trial.keys);
        if (index < 0) return;
        event.preventDefault(); // arrows and the space bar must not scroll or press a button
        answer(event, index);
      };
      document.addEventListener("keydown", press, { capture: true, signal: listening.signal });
      for (const [index, button] of buttons.entries()) {
        button?.addEventListener("click", (event) => answer(event, index), { signal: listening.signal });
      }
      exposure.atLimit(trial.time_limit_ms ?? null, () => {
        listening.abort();
        resolve(null);
      });
    });
    const early = minimum.stop();
    const times = await exposure.end(chosen?.event ?? null);
    if (chosen) return { ...times, ...early, response_raw: chosen.label };
    const waiting = trial.labels[trial.keys.indexOf(NO_KEY)] ?? null;
    return { ...times, ...early, response_raw: waiting, timed_out: waiting === null };
  }

  private layOut(trial: TrialType<Info>): {
    screen: HTMLElement;
    timed: HTMLElement;
    buttons: (HTMLButtonElement | null)[];
    done: HTMLButtonElement | null;
  } {
    const language = trial.language ?? "en";
    const itemsLanguage = trial.items_language ?? language;
    const messages = trial.messages as Messages;
    const options = (trial.options ?? []) as (string | null)[];
    const pictures = (trial.pictures ?? []) as MediaFile[];
    const text = trial.text ? styled(studyLines(trial.text, trial.lines ?? [], itemsLanguage), trial.style as Style | null) : null;
    const stimulus = withMedia((trial.media ?? []) as MediaFile[], text);
    const ask = trial.ask ? studyText("p", trial.ask, language, stimulus ? "ask" : "ask alone") : null;
    const buttons = trial.labels.map((label, index) => {
      const key = trial.keys[index] ?? label;
      if (key === NO_KEY) return null;
      const option = options[index] ?? null;
      const sameAsKey = keyName(key) === label.toLowerCase();
      const picture = pictures[index];
      if (picture) return keyButton([key], messages, library.show(picture));
      return keyButton(
        [key],
        messages,
        sameAsKey && option !== null ? null : sameAsKey ? "" : studyText("span", label, language, "label"),
        option === null ? null : studyText("span", option, itemsLanguage, "option"),
      );
    });
    if (trial.several) {
      for (const button of buttons) {
        button?.setAttribute("role", "checkbox");
        button?.setAttribute("aria-checked", "false");
      }
    }
    const done = trial.several ? keyButton(["enter"], messages, messages.done) : null;
    done?.classList.add("held");
    done?.setAttribute("aria-disabled", "true");
    const hasOptions = pictures.length === 0 && options.some((option) => option !== null);
    const order = layoutOrder(trial.keys, hasOptions);
    const group = element(
      "div",
      { class: hasOptions ? "choices listed" : "choices", role: "group", "aria-label": messages.your_answer },
      ...order.map((index) => buttons[index]),
    );
    const exemplars = exemplarList((trial.exemplars ?? []) as Exemplar[], itemsLanguage, messages);
    const item = captioned(trial.caption ?? null, stimulus ?? ask, language);
    const screen = trialScreen("choose", messages, { above: exemplars, item, below: [stimulus && ask, group, done && element("div", { class: "actions" }, done)] });
    return { screen, timed: stimulus ? timedPart(stimulus) : (ask ?? group), buttons, done };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<ChooseData> {
    const pressed = trial.labels.flatMap((_, index) => (trial.keys[index] === NO_KEY ? [] : [index]));
    const index = pressed[Math.floor(Math.random() * pressed.length)] ?? 0;
    const times = plausibleTimes(900, trial);
    if (mode === "visual") {
      this.jsPsych.pluginAPI.pressKey(trial.keys[index] ?? "", times.rt ?? 0);
      return this.trial(this.jsPsych.getDisplayElement(), trial, onLoad).then((data) => ({ ...data, simulated: true }));
    }
    onLoad?.();
    return Promise.resolve({ ...times, ...NOT_EARLY, response_raw: trial.labels[index] ?? null, simulated: true });
  }
}

/** Between the labels of a set (experiment/parsing/label_sets.py). */
const BETWEEN = ", ";

function isTicked(button: HTMLButtonElement | null | undefined): boolean {
  return button?.getAttribute("aria-checked") === "true";
}

/** Tick a label, or take its tick away; at least one is needed to be done. */
function tick(buttons: (HTMLButtonElement | null)[], index: number, done: HTMLButtonElement): void {
  buttons[index]?.setAttribute("aria-checked", String(!isTicked(buttons[index])));
  const isHeld = !buttons.some(isTicked);
  done.classList.toggle("held", isHeld);
  if (isHeld) done.setAttribute("aria-disabled", "true");
  else done.removeAttribute("aria-disabled");
}
