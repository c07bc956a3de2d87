/**
 * The maze (Forster, Guerrera & Elliot, 2009, Behav. Res. Methods 41): each word stands beside a foil, and the reader chooses the
 * one that goes on. A pair's onset is the clock in the frame that draws it; times end with the first key and with the right one.
 */

import { element } from "../dom";
import type { Messages } from "../messages";
import { frames } from "../timing/frames";
import { fitLines } from "./lines";
import type { Region } from "./self_paced";
import { keyButton, studyText } from "./stimulus";

export interface MazeTexts {
  words: readonly string[];
  foils: readonly string[];
  /** Where each word stands, left or right. */
  sides: readonly string[];
}

/** What a choice leads to: the next pair, the same pair again, or the end of the sentence. */
export type Step = "next" | "again" | "ended" | "finished";

export class Maze {
  readonly element: HTMLElement;
  readonly buttons: HTMLButtonElement[];
  readonly regions: Region[] = [];
  private readonly places: HTMLElement[];
  private readonly notice: HTMLElement;
  private current = 0;
  private shownAt: number | null = null;
  private first: { rt: number; isCorrect: boolean } | null = null;
  private isDrawing = false;

  constructor(
    private readonly texts: MazeTexts,
    keys: readonly string[],
    private readonly wrong: string,
    private readonly messages: Messages,
    language: string,
  ) {
    this.places = keys.map(() => studyText("span", "", language, "stimulus"));
    this.buttons = keys.map((key, side) => keyButton([key], messages, this.places[side]!));
    this.notice = element("p", { class: "notice", role: "status" });
    this.element = element("div", { class: "maze" }, ...this.buttons, this.notice);
    this.draw(0);
  }

  /** The first pair was drawn with its screen. */
  begin(onset: number): void {
    this.shownAt = onset;
  }

  /** Choose a side, 0 for the left. */
  choose(side: number, at: number): Step | null {
    if (this.isDrawing || this.shownAt === null || at < this.shownAt) return null;
    const rt = at - this.shownAt;
    const isCorrect = side === this.sideOf(this.current);
    this.first ??= { rt, isCorrect };
    if (!isCorrect && this.wrong === "retry") {
      this.tell();
      return "again";
    }
    this.regions.push({
      region: this.current,
      line: null,
      onset_ts: this.shownAt,
      rt: this.first.rt,
      is_correct: this.first.isCorrect,
      right_rt: isCorrect ? rt : null,
    });
    if (!isCorrect) {
      this.tell();
      return "ended";
    }
    if (this.current === this.texts.words.length - 1) return "finished";
    this.isDrawing = true;
    void frames.draw(() => this.draw(this.current + 1)).then((now) => {
      this.shownAt = now;
      this.isDrawing = false;
    });
    return "next";
  }

  private sideOf(place: number): number {
    return this.texts.sides[place] === "right" ? 1 : 0;
  }

  private draw(place: number): void {
    this.current = place;
    this.first = null;
    this.notice.textContent = "\u00a0";
    const side = this.sideOf(place);
    this.places[side]!.textContent = this.texts.words[place]!;
    this.places[1 - side]!.textContent = this.texts.foils[place]!;
    fitLines(this.element);
  }

  private tell(): void {
    this.notice.textContent = this.messages.feedback_incorrect;
  }
}
