/**
 * What is shown for counted frames, one after the other, without the reader.
 *
 * Stages change inside frame callbacks, by the frames' own stamps: a frame that the screen missed counts as shown, so that it
 * does not lengthen a stage. The last one stays until the frame that draws what follows.
 */

import type { ExposureRecord } from "../generated/trials";
import { Attention } from "./attention";
import { frames } from "./frames";
import { interruption } from "./interruption";

export interface Stage {
  /** How long it stands: a time, ms, or a number of frames. */
  ms: number;
  frames?: number | null | undefined;
  draw: () => void;
}

/** What became of a stage; `frames` is null where the screen's period is not known. */
export interface Shown {
  onset_ts: number;
  frames: number | null;
  shown_ms: number;
}

/** Frames of a screen that come nearest to a time, at least one. */
export function framesFor(ms: number, period: number): number {
  return Math.max(1, Math.round(ms / period));
}

/** Show stages after `begin` in the frame of the first; those that an interruption left out are not among the shown. */
export async function showStages(
  stages: readonly Stage[],
  begin: () => void,
): Promise<{ shown: Shown[]; record: Omit<ExposureRecord, "onset_ts"> }> {
  if (frames.period === null) await frames.wait(200); // a frame's length is known after a few
  // Without a known period, frames that come are counted.
  const lengths = stages.map((stage) => stage.frames ?? framesFor(stage.ms, frames.period ?? 1000 / 60));
  const watch = frames.watch();
  const stamps: { onset: number; from: number; until: number }[] = [];
  let attention: Attention | null = null;
  await new Promise<void>((resolve) => {
    let ticks = 0;
    const leave = frames.onEachFrame((now, stamp) => {
      ticks += 1;
      const current = stamps.at(-1);
      if (current) {
        const elapsed = frames.period === null ? ticks : Math.round((stamp - current.from) / frames.period);
        if (elapsed < lengths[stamps.length - 1]!) return;
        current.until = stamp;
      }
      const next = stages[stamps.length];
      if (!next) {
        leave();
        letBe();
        frames.holdOpen();
        resolve();
        return;
      }
      ticks = 0;
      if (!current) {
        begin();
        attention = new Attention(now);
      }
      next.draw();
      stamps.push({ onset: now, from: stamp, until: stamp });
    });
    const letBe = interruption.watch(() => {
      leave();
      resolve();
    });
  });
  const away = (attention as Attention | null)?.stop(performance.now()) ?? { hidden_ms: 0, blurred_ms: 0 };
  const period = frames.period;
  return {
    shown: stamps.map(({ onset, from, until }) => {
      return { onset_ts: onset, frames: period === null ? null : Math.round((until - from) / period), shown_ms: until - from };
    }),
    record: {
      paint_ts: null,
      response_ts: null,
      handler_ts: null,
      rt: null,
      timed_out: false,
      frame_period: period,
      dropped_frames: watch.stop(),
      ...away,
    },
  };
}
