/** A step's minimum time: presses before it do nothing, are kept raw, and the controls look as they are: not yet to be used. */

import type { Exposure } from "../timing/exposure";
import { frames } from "../timing/frames";

const LONGEST_LOG = 4000;
/** Controls of a shorter wait look as ever: a change beside the stimulus would itself be a signal to answer. */
const SEEN_MS = 1000;

export interface EarlyRecord {
  early_responses: number;
  early_keys: [ms: number, key: string][];
}

export const NOT_EARLY: EarlyRecord = { early_responses: 0, early_keys: [] };

export class MinimumTime {
  private readonly keys: EarlyRecord["early_keys"] = [];
  private count = 0;
  private readonly leave: () => void;

  /**
   * `until` says in each frame whether it is still too early, by default until `minimum_ms` have passed since the onset;
   * `onOpen` is told once when it no longer is.
   */
  constructor(
    private readonly exposure: Exposure,
    readonly minimum_ms: number,
    controls: readonly HTMLElement[],
    until: (now: number) => boolean = (now) => now - exposure.onset < minimum_ms,
    onOpen: () => void = () => {},
  ) {
    const mark = (isEarly: boolean): void => {
      for (const control of controls) {
        control.classList.toggle("held", isEarly && minimum_ms >= SEEN_MS);
        if (isEarly) control.setAttribute("aria-disabled", "true");
        else control.removeAttribute("aria-disabled");
      }
    };
    let wasEarly = until(exposure.onset);
    if (wasEarly) mark(true);
    else onOpen();
    this.leave = frames.onEachFrame((now) => {
      const isEarly = until(now);
      if (isEarly === wasEarly) return;
      wasEarly = isEarly;
      mark(isEarly);
      if (!isEarly) onOpen();
    });
  }

  /** Whether an event came before the minimum time; then it is kept under a name. */
  refuses(event: Event, name: string): boolean {
    if (event.timeStamp - this.exposure.onset >= this.minimum_ms) return false;
    this.note(event, name);
    return true;
  }

  note(event: Event, name: string): void {
    this.count += 1;
    if (this.keys.length < LONGEST_LOG) this.keys.push([event.timeStamp - this.exposure.onset, name]);
  }

  stop(): EarlyRecord {
    this.leave();
    return { early_responses: this.count, early_keys: this.keys };
  }
}
