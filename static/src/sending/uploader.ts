/**
 * Sends the outbox, oldest first, for as long as the page lives.
 *
 * No reply, or a reply that promises better times (408, 425, 429, 5xx), is retried after a growing wait; 200 and 201 settle
 * an item; any other reply will never change, so the item is kept aside as refused and reported. 425 says that the agreement
 * is not there: a server whose database was restored may have had it, so the session's events and answers go again first.
 */

import { Alarm, backoff } from "./backoff";
import type { Outbox, OutboxItem } from "./outbox";

const SERVER_FAULT = 500;
const TOO_EARLY = 425;

type Verdict = "stored" | "later" | "refused";

export function verdict(status: number): Verdict {
  if (status === 200 || status === 201) return "stored";
  if (status === 408 || status === TOO_EARLY || status === 429 || status >= 500) return "later";
  return "refused";
}

export interface UploaderOptions {
  send: (item: OutboxItem) => Promise<number>;
  onWaiting?: (isWaiting: boolean) => void;
  onRefused?: (item: OutboxItem, status: number) => void;
  chance?: () => number;
}

export class Uploader {
  private readonly alarm = new Alarm();
  private failures = 0;
  private stopped = false;
  private wanted = false;
  private waiters: (() => void)[] = [];

  constructor(
    private readonly outbox: Outbox,
    private readonly options: UploaderOptions,
  ) {}

  start(): void {
    void this.run();
  }

  stop(): void {
    this.stopped = true;
    this.alarm.wake();
  }

  /** Something new lies in the outbox. While the server is away this waits its turn. */
  notice(): void {
    this.wanted = true;
    if (this.failures === 0) this.alarm.wake();
  }

  /** The connection may be back: try now. */
  retryNow(): void {
    this.wanted = true;
    this.alarm.wake();
  }

  /** Resolves once nothing is left to send. */
  async drained(): Promise<void> {
    const done = new Promise<void>((resolve) => this.waiters.push(resolve));
    this.retryNow();
    await done;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      this.wanted = false;
      const clear = await this.pass().catch(() => false);
      this.failures = clear ? 0 : this.failures + 1;
      this.options.onWaiting?.(!clear);
      if (clear && !this.wanted) {
        for (const resolve of this.waiters.splice(0)) resolve();
      }
      if (this.wanted && clear) continue;
      await this.alarm.sleep(clear ? Infinity : backoff(this.failures, (this.options.chance ?? Math.random)()));
    }
  }

  /** Send what is pending; false where something has to be tried again. */
  private async pass(): Promise<boolean> {
    let clear = true;
    for (const item of await this.outbox.pending()) {
      const status = await this.options.send(item).catch(() => null);
      if (this.stopped) return true;
      const judged = status === null ? "later" : verdict(status);
      if (judged === "later") {
        clear = false;
        if (status === TOO_EARLY) await this.sendAgainBefore(item);
        if (status === SERVER_FAULT) continue; // its trouble may be with this item alone; the others go on
        return false;
      }
      await this.outbox.settle(item.seq, judged === "stored" ? "sent" : "refused", status);
      if (judged === "refused") this.options.onRefused?.(item, status!);
    }
    return clear;
  }

  private async sendAgainBefore({ seq, session }: OutboxItem): Promise<void> {
    for (const earlier of await this.outbox.ofSession(session)) {
      const isOwed = earlier.seq < seq && earlier.state === "sent" && earlier.kind !== "trials";
      if (isOwed) await this.outbox.settle(earlier.seq, "pending", null);
    }
  }
}
