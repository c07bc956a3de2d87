/** `wrods-feedback`: what a reader is told of the trial before, for a stated time or until the reader goes on. */

import { type JsPsych, type JsPsychPlugin, ParameterType, type TrialType } from "jspsych";
import { version } from "../../package.json";
import type { Messages } from "../messages";
import { pageScreen, showPage } from "../page";
import { frames } from "../timing/frames";
import { pageParameters } from "./parameters";

const info = <const>{
  name: "wrods-feedback",
  version,
  parameters: {
    /** `correct`, `incorrect` or `late`. */
    told: { type: ParameterType.STRING, default: undefined },
    heading: { type: ParameterType.STRING, default: undefined },
    /** What stands below the heading; null for nothing. */
    text: { type: ParameterType.STRING, default: null },
    /** How long it stands, ms; null until the reader goes on. */
    for_ms: { type: ParameterType.FLOAT, default: null },
    ...pageParameters,
  },
  data: {
    told: { type: ParameterType.STRING },
    /** Page clock in the frame that drew it, ms. */
    onset_ts: { type: ParameterType.FLOAT },
    /** How long it stood, ms. */
    duration: { type: ParameterType.FLOAT },
  },
};

type Info = typeof info;

export interface FeedbackData {
  told: string;
  onset_ts: number;
  duration: number;
}

export class FeedbackPlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<FeedbackData> {
    const messages = trial.messages as Messages;
    const { told, heading } = trial;
    const tone = told === "correct" ? ("good" as const) : ("bad" as const);
    const content = { heading, text: [trial.text ?? null], tone, kind: "feedback" };
    const for_ms = trial.for_ms ?? null;
    onLoad?.();
    if (for_ms === null) {
      const go = { name: "go_on", words: messages.go_on, key: "space" };
      const { duration, onset } = await showPage(display, content, [go], messages, trial.language ?? "en");
      return { told, onset_ts: onset, duration };
    }
    const { screen, title } = pageScreen(content, messages, trial.language ?? "en");
    const onset_ts = await frames.draw(() => display.replaceChildren(screen));
    title.focus({ preventScroll: true }); // a screen reader says it
    await frames.wait(for_ms);
    display.replaceChildren();
    return { told, onset_ts, duration: performance.now() - onset_ts };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<FeedbackData> {
    if (mode === "visual") {
      const display = this.jsPsych.getDisplayElement();
      const go = (): void => display.querySelector<HTMLElement>(".actions button")?.click();
      const clicking = setInterval(go, 300);
      return this.trial(display, trial, onLoad).finally(() => clearInterval(clicking));
    }
    onLoad?.();
    return Promise.resolve({ told: trial.told, onset_ts: performance.now(), duration: trial.for_ms ?? 1000 });
  }
}
