/** What the server told of trials: whether an answer was right, which only it knows, once the answer is stored. */

import type { Verdict } from "../procedure/plan";

/** How long a reader waits to be told; behind a slow connection nothing is told. */
const PATIENCE_MS = 2000;
const MOST_KEPT = 50;

export class Verdicts {
  private readonly heard = new Map<string, Verdict | null>();
  private readonly waiting = new Map<string, (verdict: Verdict | null) => void>();

  constructor(private readonly patience_ms = PATIENCE_MS) {}

  hear(client_uuid: string, verdict: Verdict | null): void {
    const waiter = this.waiting.get(client_uuid);
    if (waiter) return waiter(verdict);
    this.heard.set(client_uuid, verdict);
    for (const old of this.heard.keys()) {
      if (this.heard.size <= MOST_KEPT) break;
      this.heard.delete(old);
    }
  }

  /** What was told of a trial; `unheard` where no word comes in time. */
  async of(client_uuid: string): Promise<Verdict | null | "unheard"> {
    const known = this.heard.get(client_uuid);
    if (known !== undefined) return known;
    if (!navigator.onLine) return "unheard";
    return new Promise((resolve) => {
      const end = (verdict: Verdict | null | "unheard"): void => {
        clearTimeout(timer);
        this.waiting.delete(client_uuid);
        resolve(verdict);
      };
      const timer = setTimeout(() => end("unheard"), this.patience_ms);
      this.waiting.set(client_uuid, end);
    });
  }
}
