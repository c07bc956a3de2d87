/**
 * The time during which the participant decides whether to stop: the stimulus that is up ends unanswered, and nothing new
 * is shown until it is over.
 */

export class Interruption {
  private readonly shown = new Set<() => void>();
  private wasCut = false;
  private close: (() => void) | null = null;
  private closed: Promise<void> = Promise.resolve();

  get isOn(): boolean {
    return this.close !== null;
  }

  begin(): void {
    if (this.isOn) return;
    this.closed = new Promise((resolve) => (this.close = resolve));
    for (const end of [...this.shown]) this.cut(end);
  }

  end(): void {
    this.close?.();
    this.close = null;
  }

  /** Begin afresh: whoever waits for the end of an interruption that led out of the session waits for ever. */
  forget(): void {
    this.close = null;
    this.closed = Promise.resolve();
    this.wasCut = false;
    this.shown.clear();
  }

  /** Resolves when the interruption is over; at once where there is none. */
  over(): Promise<void> {
    return this.closed;
  }

  /** Have a stimulus ended by an interruption, also one that began before it was drawn; returns how to let it be. */
  watch(end: () => void): () => void {
    if (this.isOn) this.cut(end);
    else this.shown.add(end);
    return () => this.shown.delete(end);
  }

  /** Whether a stimulus was ended, and its trial was not yet told so. */
  get isCut(): boolean {
    return this.wasCut;
  }

  /** Whether a stimulus was ended since this was asked last. */
  takeCut(): boolean {
    const wasCut = this.wasCut;
    this.wasCut = false;
    return wasCut;
  }

  private cut(end: () => void): void {
    this.shown.delete(end);
    this.wasCut = true;
    end();
  }
}

export const interruption = new Interruption();
