/**
 * The moving window of self-paced reading (Just, Carpenter & Woolley, 1982, J. Exp. Psychol. Gen. 111), in the DOM.
 *
 * Every word stands covered by dashes, as many as it has letters; spaces and lines stay. Each press uncovers the next
 * word and covers the last. A word's onset is the clock in the frame that uncovers it; its time ends with the press.
 */

import { element } from "../dom";
import { frames } from "../timing/frames";
import { blankLines } from "./lines";

/** One word's place and times, as a trial's row holds it. */
export interface Region {
  region: number;
  line: number;
  onset_ts: number;
  rt: number;
}

export interface Word {
  text: string;
  line: number;
}

/** The words of a text: what stands between white space, with the line it stands in. */
export function wordsOf(lines: readonly string[]): Word[] {
  return lines.flatMap((text, line) => (text.match(/\S+/g) ?? []).map((word) => ({ text: word, line })));
}

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/;

/** A dash for each letter, two for one that fills two cells. */
export function dashes(word: string, language: string): string {
  const letters =
    "Segmenter" in Intl
      ? [...new Intl.Segmenter(language, { granularity: "grapheme" }).segment(word)].map(({ segment }) => segment)
      : [...word.normalize("NFC")]; // older browsers cut marks off their letters
  return letters.map((letter) => (WIDE.test(letter) ? "--" : "-")).join("");
}

export class MovingWindow {
  readonly element: HTMLElement;
  readonly regions: Region[] = [];
  /** When the first word was uncovered. */
  onset: number | null = null;
  private readonly words: Word[];
  private readonly covers: string[];
  private readonly places: HTMLElement[];
  private current = -1;
  private shownAt: number | null = null;
  private isDrawing = false;

  constructor(lines: readonly string[], language: string) {
    this.words = wordsOf(lines);
    this.covers = this.words.map((word) => dashes(word.text, language));
    this.places = this.covers.map((cover) => element("span", { class: "word", "aria-hidden": "true" }, cover));
    let next = 0;
    const parts = lines.flatMap((line, index): (Node | string)[] => {
      const pieces = line.split(/(\S+)/).filter((piece) => piece !== "");
      const shown = pieces.map((piece) => (/\S/.test(piece) ? this.places[next++]! : piece));
      return index > 0 ? ["\n", ...shown] : shown;
    });
    this.element = blankLines(language, ...parts);
    this.element.setAttribute("aria-live", "off"); // words are read when asked for, not cried out
    this.element.classList.add("window");
    // Dashes have no direction of their own: they take that of the words.
    this.element.dir = isRightToLeft(lines.join(" ")) ? "rtl" : "ltr";
  }

  /** Give each word the room that both it and its dashes need, where the letters' font is not monospaced. */
  keepPlaces(): void {
    const widths = (): number[] => this.places.map((place) => place.getBoundingClientRect().width);
    const covered = widths();
    this.places.forEach((place, index) => (place.textContent = this.words[index]!.text));
    const open = widths();
    this.places.forEach((place, index) => (place.textContent = this.covers[index]!));
    if (open.every((width, index) => Math.abs(width - covered[index]!) < 1)) return;
    const size = parseFloat(getComputedStyle(this.element).fontSize);
    this.places.forEach((place, index) => {
      place.classList.add("steady");
      place.style.width = `${Math.max(open[index]!, covered[index]!) / size}em`; // shrinks with the text
    });
  }

  get isLast(): boolean {
    return this.current === this.words.length - 1;
  }

  /** Go on to the next word, or tell that the last one is read; `minimum` is the least time of the whole text in ms. */
  press(at: number, minimum: number): boolean {
    if (this.isDrawing) return false;
    if (this.current >= 0) {
      if (at < this.shownAt!) return false;
      if (this.isLast && at - this.onset! < minimum) return false;
      const { line } = this.words[this.current]!;
      this.regions.push({ region: this.current, line, onset_ts: this.shownAt!, rt: at - this.shownAt! });
    }
    if (this.isLast) return true;
    this.isDrawing = true;
    void frames.draw(() => this.uncoverNext()).then((now) => {
      this.shownAt = now;
      this.onset ??= now;
      this.isDrawing = false;
    });
    return false;
  }

  private uncoverNext(): void {
    const last = this.places[this.current];
    if (last) {
      last.textContent = this.covers[this.current]!;
      last.setAttribute("aria-hidden", "true");
    }
    this.current += 1;
    const next = this.places[this.current]!;
    next.textContent = this.words[this.current]!.text;
    next.removeAttribute("aria-hidden");
    const { top, bottom } = next.getBoundingClientRect();
    if (top < 0 || bottom > window.innerHeight) next.scrollIntoView({ block: "center" });
  }
}

/** Whether lines fit a part of the page at their full size, and the width of the window in which they do, CSS pixels. */
export function roomFor(lines: readonly string[], language: string, place: HTMLElement): { needed: number; fits: boolean } {
  const moving = new MovingWindow(lines, language);
  moving.element.style.cssText = "position: absolute; visibility: hidden";
  place.append(moving.element);
  moving.keepPlaces();
  const missing = Math.ceil(moving.element.getBoundingClientRect().width) - place.clientWidth;
  moving.element.remove();
  return { needed: innerWidth + missing, fits: missing <= 0 };
}

/** Whether the first letter with a direction runs from right to left, as `dir=auto` finds it. */
export function isRightToLeft(text: string): boolean {
  const first = /\p{L}/u.exec(text)?.[0] ?? "";
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(first);
}
