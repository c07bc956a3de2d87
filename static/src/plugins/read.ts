/** `wrods-read`: a text read at one's own pace, all of it at once or through a window that moves from word to word. */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { element } from "../dom";
import { readFields, readParameters, type ReadRecord } from "../generated/trials";
import { isPlainStroke, keyName } from "../keys";
import type { Messages } from "../messages";
import { Exposure } from "../timing/exposure";
import { fitLines, studyLines } from "./lines";
import { MovingWindow, type Region, wordsOf } from "./moving_window";
import { MinimumTime, NOT_EARLY } from "./minimum";
import { pageParameters } from "./parameters";
import { plausibleTimes, type Simulated } from "./simulation";
import { captioned, keyButton, trialScreen } from "./stimulus";

const info = <const>{
  name: "wrods-read",
  version,
  parameters: { ...readParameters, ...pageParameters },
  data: readFields,
};

type Info = typeof info;

export type ReadData = ReadRecord & { regions?: Region[] } & Simulated;

export class ReadPlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<ReadData> {
    if (trial.as !== "whole" && trial.as !== "moving_window") {
      throw new Error(`wrods-read shows texts "whole" or by "moving_window"; the plan asks for "${trial.as}"`);
    }
    const messages = trial.messages as Messages;
    const language = trial.language ?? "en";
    const itemsLanguage = trial.items_language ?? language;
    const lines = linesOf(trial);
    const moving = trial.as === "moving_window" ? new MovingWindow(lines, itemsLanguage) : null;
    const text = moving?.element ?? studyLines(trial.text, lines, itemsLanguage);
    const button = keyButton(["space"], messages, moving ? messages.next_word : messages.go_on);
    const item = captioned(trial.caption ?? null, text, language);
    const screen = trialScreen("read", messages, { item, below: [element("div", { class: "actions" }, button)] });
    const minimum = trial.minimum_ms ?? 0;

    const exposure = await Exposure.begin(display, screen, text, () => {
      if (!moving) return;
      moving.keepPlaces();
      fitLines(screen);
    });
    screen.focus({ preventScroll: true });
    onLoad?.();
    const isTooEarly = (now: number): boolean =>
      moving ? moving.isLast && now - (moving.onset ?? now) < minimum : now - exposure.onset < minimum;
    const early = new MinimumTime(exposure, minimum, [button], isTooEarly);
    const response = await new Promise<Event | null>((resolve) => {
      const listening = new AbortController();
      const answer = (event: Event): void => {
        if (!exposure.accepts(event)) return;
        if (isTooEarly(event.timeStamp)) return early.note(event, "space");
        if (moving && !moving.press(event.timeStamp, minimum)) return;
        listening.abort();
        resolve(event);
      };
      const options = { capture: true, signal: listening.signal };
      document.addEventListener(
        "keydown",
        (event) => {
          if (keyName(event.key) !== "space" || !isPlainStroke(event)) return;
          event.preventDefault(); // the space bar must not scroll the page
          answer(event);
        },
        options,
      );
      button.addEventListener("click", answer, { signal: listening.signal });
      exposure.atLimit(null, () => {
        listening.abort();
        resolve(null);
      });
    });
    const presses = early.stop();
    const times = { ...(await exposure.end(response)), ...presses };
    if (!moving || response === null) return { ...times, reading_time: times.rt };
    // Reading begins with the first word: dashes are nothing to read.
    return { ...times, reading_time: response.timeStamp - (moving.onset ?? exposure.onset), regions: moving.regions };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<ReadData> {
    const words = wordsOf(linesOf(trial));
    const isMoving = trial.as === "moving_window";
    const times = { ...plausibleTimes(250 * words.length, { minimum_ms: trial.minimum_ms }), ...NOT_EARLY };
    if (mode === "visual") {
      const press = (): void => this.jsPsych.pluginAPI.pressKey(" ");
      const pressing = setInterval(press, isMoving ? 300 : (times.rt ?? 0));
      return this.trial(this.jsPsych.getDisplayElement(), trial, onLoad)
        .then((data): ReadData => ({ ...data, simulated: true }))
        .finally(() => clearInterval(pressing));
    }
    onLoad?.();
    if (!isMoving) return Promise.resolve({ ...times, reading_time: times.rt, simulated: true });
    const each = (times.rt ?? 0) / words.length;
    const regions = words.map((word, region) => {
      return { region, line: word.line, onset_ts: times.onset_ts + region * each, rt: each };
    });
    return Promise.resolve({ ...times, reading_time: times.rt, regions, simulated: true });
  }
}

function linesOf(trial: { text: string; lines?: string[] | null | undefined }): string[] {
  return trial.lines && trial.lines.length > 0 ? trial.lines : trial.text.split("\n");
}
