/** `wrods-prime`: a mask, a prime for a counted number of frames, perhaps a second mask; the next step follows at once. */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { primeFields, primeParameters, type PrimeRecord } from "../generated/trials";
import type { Messages } from "../messages";
import { framesFor, showStages, type Stage } from "../timing/stages";
import { blankLines, fitLines, type Style, styled } from "./lines";
import { pageParameters } from "./parameters";
import { plausibleTimes, type Simulated } from "./simulation";
import { captioned, trialScreen } from "./stimulus";

const info = <const>{
  name: "wrods-prime",
  version,
  parameters: { ...primeParameters, ...pageParameters },
  data: primeFields,
};

type Info = typeof info;

export type PrimeData = PrimeRecord & Simulated;

export class PrimePlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<PrimeData> {
    const text = styled(blankLines(trial.items_language ?? trial.language ?? "en"), trial.style as Style | null);
    const screen = trialScreen("prime", trial.messages as Messages, { item: captioned(null, text, ""), below: [] });
    screen.setAttribute("aria-hidden", "true"); // too short to be read out
    const draw = (words: string): void => {
      text.textContent = words;
      fitLines(screen);
    };
    const { text: words, mask, mask_ms, frames, prime_ms, backward_mask, backward_ms } = trial;
    const stages: Stage[] = [
      ...(mask_ms > 0 ? [{ ms: mask_ms, draw: () => draw(mask) }] : []),
      { ms: prime_ms, frames, draw: () => draw(words) },
      ...(backward_mask && (backward_ms ?? 0) > 0 ? [{ ms: backward_ms ?? 0, draw: () => draw(backward_mask) }] : []),
    ];
    const { shown, record } = await showStages(stages, () => {
      display.replaceChildren(screen);
      onLoad?.();
    });
    const prime = shown[mask_ms > 0 ? 1 : 0];
    return { ...record, onset_ts: prime?.onset_ts ?? 0, prime_frames: prime ? prime.frames : 0, prime_ms: prime?.shown_ms ?? 0 };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<PrimeData> {
    if (mode === "visual") {
      return this.trial(this.jsPsych.getDisplayElement(), trial, onLoad).then((data) => ({ ...data, simulated: true }));
    }
    onLoad?.();
    const times = { ...plausibleTimes(0), response_ts: null, handler_ts: null, rt: null };
    const period = times.frame_period ?? 1000 / 60;
    const prime_frames = trial.frames ?? framesFor(trial.prime_ms, period);
    return Promise.resolve({ ...times, prime_frames, prime_ms: prime_frames * period, simulated: true });
  }
}
