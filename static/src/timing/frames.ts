/**
 * The page's frame clock: one requestAnimationFrame loop for the whole visit.
 *
 * Stimuli are drawn inside one of its frames, and the onset is `performance.now()` read there once they are laid out: the
 * frame's own time stamp can lie before the drawing when the page was idle, and laying out takes long on slow machines.
 * Time limits are watched from the same loop.
 */

export interface FrameSource {
  request(callback: (stamp: number) => void): void;
  now(): number;
  /** Have what was drawn laid out now instead of at the end of the frame. */
  layOut(): void;
}

const KEPT_INTERVALS = 120;
const FEWEST_INTERVALS = 10;
const DROPPED_PERIODS = 1.5;

export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Counts frames that the screen missed since it was made. */
export class FrameWatch {
  dropped = 0;

  constructor(private readonly clock: FrameClock) {}

  see(interval: number): void {
    const period = this.clock.period;
    if (period !== null && interval > DROPPED_PERIODS * period) this.dropped += Math.round(interval / period) - 1;
  }

  /** Stop counting; frames missed since the last one that came are counted too. */
  stop(): number {
    this.clock.unwatch(this);
    return this.dropped;
  }
}

export class FrameClock {
  private intervals: number[] = [];
  private previous: number | null = null;
  private running = false;
  private readonly once: Array<(now: number) => void> = [];
  private readonly each = new Set<(now: number, stamp: number) => void>();
  private isOpen = false;
  private readonly watches = new Set<FrameWatch>();

  constructor(private readonly source: FrameSource) {}

  start(): void {
    if (this.running) return;
    this.running = true;
    const frame = (stamp: number): void => {
      this.source.request(frame);
      this.tick(stamp);
    };
    this.source.request(frame);
  }

  /** A hidden page gets no frames; the gap is neither a period nor a dropped frame. */
  forgetPrevious(): void {
    this.previous = null;
  }

  /** Median frame period in ms, null until enough frames were seen. */
  get period(): number | null {
    return this.intervals.length < FEWEST_INTERVALS ? null : median(this.intervals);
  }

  /** Run `draw` inside the next frame; resolves with the page's clock as read there, after drawing and layout. */
  draw(draw: () => void): Promise<number> {
    if (this.isOpen) {
      this.isOpen = false;
      return Promise.resolve(this.drawn(draw));
    }
    return new Promise((resolve, reject) => {
      this.once.push(() => {
        try {
          resolve(this.drawn(draw));
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
  }

  private drawn(draw: () => void): number {
    draw();
    this.source.layOut();
    return this.source.now();
  }

  /**
   * Let the next drawing still happen in the frame that is under way, if it comes before this frame is painted: what ends
   * in a frame is followed by what comes next without an empty frame between them. To be called in a frame's callback.
   */
  holdOpen(): void {
    this.isOpen = true;
    // A frame is painted at the end of its own task; the next task comes too late.
    setTimeout(() => (this.isOpen = false), 0);
  }

  /** Call back in each frame with the clock as read there and the frame's own stamp. */
  onEachFrame(callback: (now: number, stamp: number) => void): () => void {
    this.each.add(callback);
    return () => this.each.delete(callback);
  }

  /** Resolves in the first frame at which `ms` have passed, half a frame early rather than late. */
  wait(ms: number): Promise<void> {
    const start = this.source.now();
    return new Promise<void>((resolve) => {
      const leave = this.onEachFrame((now) => {
        if (now - start < ms - (this.period ?? 0) / 2) return;
        leave();
        resolve();
      });
    });
  }

  watch(): FrameWatch {
    const watch = new FrameWatch(this);
    this.watches.add(watch);
    return watch;
  }

  unwatch(watch: FrameWatch): void {
    this.watches.delete(watch);
    if (this.previous !== null) watch.see(this.source.now() - this.previous);
  }

  private tick(stamp: number): void {
    if (this.previous !== null) {
      const interval = stamp - this.previous;
      for (const watch of this.watches) watch.see(interval);
      this.intervals.push(interval);
      if (this.intervals.length > KEPT_INTERVALS) this.intervals.shift();
    }
    this.previous = stamp;
    const waiting = this.once.splice(0);
    for (const callback of waiting) callback(this.source.now());
    for (const callback of [...this.each]) callback(this.source.now(), stamp);
  }
}

export const frames = new FrameClock({
  request: (callback) => void requestAnimationFrame(callback),
  now: () => performance.now(),
  layOut: () => void document.body.getBoundingClientRect(),
});

document.addEventListener("visibilitychange", () => frames.forgetPrevious());
