/** `wrods-read`: a text read at one's own pace, all of it at once or part by part. */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { element } from "../dom";
import { readFields, readParameters, type ReadRecord } from "../generated/trials";
import { isPlainStroke, keyName } from "../keys";
import type { Messages } from "../messages";
import { Exposure } from "../timing/exposure";
import { fitLines, studyLines } from "./lines";
import { MinimumTime, NOT_EARLY } from "./minimum";
import { pageParameters } from "./parameters";
import { MODES, type Region, SelfPacedText, wordsOf } from "./self_paced";
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
    const mode = MODES.find((one) => one === trial.as) ?? null;
    if (mode === null && trial.as !== "whole") {
      throw new Error(`wrods-read shows texts as whole, ${MODES.join(", ")}; the plan asks for "${trial.as}"`);
    }
    const messages = trial.messages as Messages;
    const language = trial.language ?? "en";
    const itemsLanguage = trial.items_language ?? language;
    const lines = linesOf(trial);
    const paced = mode && new SelfPacedText(lines, partsOf(trial), mode, itemsLanguage);
    const text = paced?.element ?? studyLines(trial.text, lines, itemsLanguage);
    const isByWord = paced !== null && partsOf(trial).length === wordsOf(lines).length;
    const button = keyButton(["space"], messages, isByWord ? messages.next_word : messages.go_on);
    const item = captioned(trial.caption ?? null, text, language);
    const screen = trialScreen("read", messages, { item, below: [element("div", { class: "actions" }, button)] });
    const minimum = trial.minimum_ms ?? 0;

    const exposure = await Exposure.begin(display, screen, text, () => {
      paced?.arrange(() => fitLines(screen));
    });
    screen.focus({ preventScroll: true });
    onLoad?.();
    const isTooEarly = (now: number): boolean =>
      paced ? paced.isLast && now - (paced.onset ?? now) < minimum : now - exposure.onset < minimum;
    const early = new MinimumTime(exposure, minimum, [button], isTooEarly);
    const response = await new Promise<Event | null>((resolve) => {
      const listening = new AbortController();
      const answer = (event: Event): void => {
        if (!exposure.accepts(event)) return;
        if (isTooEarly(event.timeStamp)) return early.note(event, "space");
        if (paced && !paced.press(event.timeStamp, minimum)) return;
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
    if (!paced || response === null) return { ...times, reading_time: times.rt };
    // Reading begins with the first part: dashes are nothing to read.
    return { ...times, reading_time: response.timeStamp - (paced.onset ?? exposure.onset), regions: paced.regions };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<ReadData> {
    const parts = partsOf(trial);
    const isPaced = trial.as !== "whole";
    const times = { ...plausibleTimes(250 * wordsOf(linesOf(trial)).length, { minimum_ms: trial.minimum_ms }), ...NOT_EARLY };
    if (mode === "visual") {
      const press = (): void => this.jsPsych.pluginAPI.pressKey(" ");
      const pressing = setInterval(press, isPaced ? 300 : (times.rt ?? 0));
      return this.trial(this.jsPsych.getDisplayElement(), trial, onLoad)
        .then((data): ReadData => ({ ...data, simulated: true }))
        .finally(() => clearInterval(pressing));
    }
    onLoad?.();
    if (!isPaced) return Promise.resolve({ ...times, reading_time: times.rt, simulated: true });
    const each = (times.rt ?? 0) / parts.length;
    const regions = parts.map((_, region) => ({ region, line: null, onset_ts: times.onset_ts + region * each, rt: each }));
    return Promise.resolve({ ...times, reading_time: times.rt, regions, simulated: true });
  }
}

/** The parts of a text that is read part by part; the words of one whose plan names none. */
function partsOf(trial: { text: string; lines?: string[] | null | undefined; parts?: string[] | null | undefined }): string[] {
  return trial.parts && trial.parts.length > 0 ? trial.parts : wordsOf(linesOf(trial));
}

function linesOf(trial: { text: string; lines?: string[] | null | undefined }): string[] {
  return trial.lines && trial.lines.length > 0 ? trial.lines : trial.text.split("\n");
}
