/**
 * One stimulus on the screen, from the frame that draws it to the response that ends it.
 *
 * Onset: the page's clock inside the frame that draws it, once it is laid out. Response: the event's own time stamp. The paint time, the clock
 * in the handler, dropped frames and time away are kept raw beside them.
 */

import type { ExposureRecord } from "../generated/trials";
import { library } from "../media";
import { fitScreen } from "../plugins/room";
import { Attention } from "./attention";
import { frames, type FrameWatch } from "./frames";
import { interruption } from "./interruption";
import { paints } from "./paint";

const FRAMES_TO_WAIT_FOR_PAINT = 4;
/** How long after a limit the clock ends a stimulus where no frame comes to do it: a hidden page gets none. */
const FRAMES_LATE_MS = 300;

export class Exposure {
  private readonly attention: Attention;
  private readonly watch: FrameWatch;
  private stopDeadline: (() => void) | null = null;
  private limit: number | null = null;

  private constructor(
    readonly onset: number,
    private readonly paintName: string,
  ) {
    this.attention = new Attention(onset);
    this.watch = frames.watch();
  }

  /** Draw a screen in the next frame; `stimulus` is the element in it whose paint is timed, `arrange` its last touch. */
  static async begin(
    display: HTMLElement,
    screen: HTMLElement,
    stimulus: HTMLElement,
    arrange: () => void = () => {},
  ): Promise<Exposure> {
    const name = paints.expect(stimulus);
    const onset = await frames.draw(() => {
      display.replaceChildren(screen);
      fitScreen(screen);
      arrange();
      library.start(screen);
    });
    return new Exposure(onset, name);
  }

  /** Whether an event answers this stimulus: it happened after the onset, in time, and is no key held down. */
  accepts(event: Event): boolean {
    if (event.timeStamp < this.onset || (event instanceof KeyboardEvent && event.repeat)) return false;
    return this.limit === null || event.timeStamp - this.onset <= this.limit;
  }

  /** Call back once when `limit` ms have passed or the participant asks to stop, unless the exposure ended before. */
  atLimit(limit: number | null, callback: () => void): void {
    this.stopDeadline = interruption.watch(() => {
      this.stopDeadline?.();
      callback();
    });
    if (limit === null || interruption.isOn) return;
    this.limit = limit;
    const stopWatching = this.stopDeadline;
    const end = (): void => {
      this.stopDeadline?.();
      // One task later, so that a key pressed in time but still queued behind a busy page counts.
      setTimeout(callback, 0);
    };
    const leave = frames.onEachFrame((now) => {
      if (now - this.onset >= limit - (frames.period ?? 0) / 2) end();
    });
    const timer = setTimeout(end, limit - (performance.now() - this.onset) + FRAMES_LATE_MS);
    this.stopDeadline = () => {
      stopWatching();
      leave();
      clearTimeout(timer);
    };
  }

  /** End with the response's event, or with null where time ran out. */
  async end(response: Event | null): Promise<ExposureRecord> {
    const handler = performance.now();
    this.stopDeadline?.();
    library.stop();
    const dropped_frames = this.watch.stop();
    const away = this.attention.stop(response?.timeStamp ?? handler);
    const frame_period = frames.period;
    const paint_ts = await this.paint();
    return {
      onset_ts: this.onset,
      paint_ts,
      response_ts: response?.timeStamp ?? null,
      handler_ts: response ? handler : null,
      rt: response ? response.timeStamp - this.onset : null,
      timed_out: response === null,
      frame_period,
      dropped_frames,
      ...away,
    };
  }

  private async paint(): Promise<number | null> {
    let time = paints.take(this.paintName);
    for (let frame = 0; time === null && paints.supported && frame < FRAMES_TO_WAIT_FOR_PAINT; frame++) {
      if (document.visibilityState === "hidden") break; // no frames come to a hidden page
      await frames.draw(() => {});
      time = paints.take(this.paintName);
    }
    paints.forget();
    return time;
  }
}
