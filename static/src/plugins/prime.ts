/**
 * `wrods-prime`: a mask, a prime for a counted number of frames, perhaps a second mask; the next step follows at once.
 *
 * Masks and prime change inside frame callbacks, by the frames' own stamps: a frame that the screen missed counts as
 * shown, so that it does not lengthen the prime. The last one stays until the frame that draws the next step.
 */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { primeFields, primeParameters, type PrimeRecord } from "../generated/trials";
import type { Messages } from "../messages";
import { Attention } from "../timing/attention";
import { frames } from "../timing/frames";
import { interruption } from "../timing/interruption";
import { blankLines, fitLines } from "./lines";
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

/** Frames of a screen that come nearest to a time, at least one. */
export function framesFor(ms: number, period: number): number {
  return Math.max(1, Math.round(ms / period));
}

export class PrimePlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<PrimeData> {
    const text = blankLines(trial.items_language ?? trial.language ?? "en");
    const screen = trialScreen("prime", trial.messages as Messages, { item: captioned(null, text, ""), below: [] });
    screen.setAttribute("aria-hidden", "true"); // too short to be read out
    const draw = (words: string): void => {
      text.textContent = words;
      fitLines(screen);
    };
    if (frames.period === null) await frames.wait(200); // a frame's length is known after a few

    // Each stage lasts a number of frames; without a known period, frames that come are counted.
    const count = (ms: number): number => framesFor(ms, frames.period ?? 1000 / 60);
    const stages = [
      ...(trial.mask_ms > 0 ? [{ words: trial.mask, frames: count(trial.mask_ms), isPrime: false }] : []),
      { words: trial.text, frames: trial.frames ?? count(trial.prime_ms), isPrime: true },
      ...(trial.backward_mask && (trial.backward_ms ?? 0) > 0
        ? [{ words: trial.backward_mask, frames: count(trial.backward_ms ?? 0), isPrime: false }]
        : []),
    ];
    const watch = frames.watch();
    const prime = { onset: 0, from: 0, until: 0 };
    let attention: Attention | null = null;
    await new Promise<void>((resolve) => {
      let stage = -1;
      let since = 0;
      let ticks = 0;
      const leave = frames.onEachFrame((now, stamp) => {
        ticks += 1;
        const elapsed = frames.period === null ? ticks : Math.round((stamp - since) / frames.period);
        if (stage >= 0 && elapsed < stages[stage]!.frames) return;
        if (stages[stage]?.isPrime) prime.until = stamp;
        stage += 1;
        const next = stages[stage];
        if (!next) {
          leave();
          letBe();
          frames.holdOpen();
          resolve();
          return;
        }
        since = stamp;
        ticks = 0;
        if (stage === 0) {
          display.replaceChildren(screen);
          attention = new Attention(now);
          onLoad?.();
        }
        draw(next.words);
        if (next.isPrime) Object.assign(prime, { onset: now, from: stamp });
      });
      const letBe = interruption.watch(() => {
        leave();
        resolve();
      });
    });
    const away = (attention as Attention | null)?.stop(performance.now()) ?? { hidden_ms: 0, blurred_ms: 0 };
    const frame_period = frames.period;
    const prime_ms = prime.until - prime.from;
    return {
      onset_ts: prime.onset,
      paint_ts: null,
      response_ts: null,
      handler_ts: null,
      rt: null,
      timed_out: false,
      frame_period,
      dropped_frames: watch.stop(),
      ...away,
      prime_frames: frame_period === null ? null : Math.round(prime_ms / frame_period),
      prime_ms,
    };
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
