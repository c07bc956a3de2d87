/** What jsPsych's simulation mode records: marked, so that it can never pass for a person's data. */

import type { ExposureRecord } from "../generated/trials";

export interface Simulated {
  simulated?: true;
}

/** When a step takes answers, ms from its onset; null for no bound. */
export interface Bounds {
  minimum_ms?: number | null | undefined;
  time_limit_ms?: number | null | undefined;
}

/** Plausible times around a typical response time in ms, within the bounds of the step. */
export function plausibleTimes(typical: number, { minimum_ms, time_limit_ms }: Bounds = {}): ExposureRecord {
  const onset = performance.now();
  const [low, high] = [minimum_ms ?? 0, time_limit_ms ?? Infinity];
  const middle = high === Infinity ? low + typical : low + Math.min(typical, (high - low) / 2);
  const rt = low + (middle - low) * (0.75 + 0.5 * Math.random());
  return {
    onset_ts: onset,
    paint_ts: onset + 4,
    response_ts: onset + rt,
    handler_ts: onset + rt + 0.3,
    rt,
    timed_out: false,
    frame_period: 1000 / 60,
    dropped_frames: 0,
    hidden_ms: 0,
    blurred_ms: 0,
  };
}
