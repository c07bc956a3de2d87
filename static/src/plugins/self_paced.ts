/**
 * Texts of self-paced reading, in the DOM: each press uncovers the next part, a word, a chunk or a sentence.
 *
 * In the moving window (Just, Carpenter & Woolley, 1982, J. Exp. Psychol. Gen. 111) every word stands covered by dashes, as
 * many as it has letters, and a press covers the last part again; in a cumulative text what was read stays; in a centred one
 * each part is alone, with its lines, in the middle of the screen. A part's onset is the clock in the frame that uncovers it;
 * its time ends with the press.
 */

import { element } from "../dom";
import { frames } from "../timing/frames";
import { blankLines } from "./lines";

export const MODES = ["moving_window", "cumulative", "centred"] as const;
export type Mode = (typeof MODES)[number];

/** One part's place and times, as a trial's row holds it. */
export interface Region {
  region: number;
  line: number | null;
  onset_ts: number;
  /** Until the press that ended it; none where it ended by itself. */
  rt?: number;
  frames?: number | null;
  shown_ms?: number;
  /** Whether the first key of a maze chose the word, and when a key did. */
  is_correct?: boolean;
  right_rt?: number | null;
}

/** What stands between white space, or as much of it as belongs to one part. */
export interface Piece {
  text: string;
  part: number;
}

/** The words of lines, which are the parts of a text that none divides. */
export function wordsOf(lines: readonly string[]): string[] {
  return lines.flatMap((text) => text.match(/\S+/g) ?? []);
}

/** Each line in pieces of parts and the white space between them, which belongs to none. */
export function piecesOf(lines: readonly string[], parts: readonly string[]): (Piece | string)[][] {
  let part = 0;
  const sizeOf = (place: number): number => (parts[place] ?? "").replace(/\s/g, "").length;
  let left = sizeOf(0);
  return lines.map((line) => {
    const pieces: (Piece | string)[] = [];
    for (const run of line.split(/(\S+)/).filter((one) => one !== "")) {
      if (!/\S/.test(run)) {
        pieces.push(run);
        continue;
      }
      for (let at = 0; at < run.length; ) {
        const text = run.slice(at, at + left);
        if (text === "") throw new Error(`the lines of a text hold more than its parts: "${run.slice(at)}"`);
        pieces.push({ text, part });
        at += text.length;
        left -= text.length;
        if (left === 0) left = sizeOf(++part);
      }
    }
    return pieces;
  });
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

interface Place extends Piece {
  line: number;
  cover: string;
  element: HTMLElement;
}

export class SelfPacedText {
  readonly element: HTMLElement;
  readonly regions: Region[] = [];
  /** When the first part was uncovered. */
  onset: number | null = null;
  private readonly places: Place[] = [];
  private readonly contents: (Place | string)[][];
  private readonly last: number;
  private current = -1;
  private shownAt: number | null = null;
  private isDrawing = false;

  constructor(
    lines: readonly string[],
    parts: readonly string[],
    private readonly mode: Mode,
    language: string,
  ) {
    this.contents = piecesOf(lines, parts).map((pieces, line) =>
      pieces.map((piece) => (typeof piece === "string" ? piece : this.place(piece, line, language))),
    );
    this.last = this.places.at(-1)?.part ?? -1;
    this.element = blankLines(language, ...this.nodes(null));
    this.element.setAttribute("aria-live", "off"); // words are read when asked for, not cried out
    this.element.classList.add("window");
    // Dashes have no direction of their own: they take that of the words.
    this.element.dir = isRightToLeft(lines.join(" ")) ? "rtl" : "ltr";
  }

  private place(piece: Piece, line: number, language: string): Place {
    const cover = dashes(piece.text, language);
    const place = { ...piece, line, cover, element: element("span", { class: "word", "aria-hidden": "true" }, cover) };
    this.places.push(place);
    return place;
  }

  /** What the lines hold, or those of one part. */
  private nodes(part: number | null): (Node | string)[] {
    const lines = this.contents.filter((line) => part === null || line.some((one) => typeof one !== "string" && one.part === part));
    return lines.flatMap((line, index) => {
      const shown = line.map((one) => (typeof one === "string" ? one : one.element));
      return index > 0 ? ["\n", ...shown] : shown;
    });
  }

  /** Find each word's room and the size at which all lines fit, once the text is on the page. */
  arrange(fit: () => void): void {
    if (this.mode !== "centred") {
      this.keepPlaces();
      return fit();
    }
    for (const place of this.places) place.element.textContent = place.text;
    fit(); // one size for all parts
    for (const place of this.places) place.element.textContent = place.cover;
    this.element.replaceChildren(...this.nodes(0));
  }

  /** Give each word the room that both it and its dashes need, where the letters' font is not monospaced. */
  private keepPlaces(): void {
    const widths = (): number[] => this.places.map((place) => place.element.getBoundingClientRect().width);
    const covered = widths();
    for (const place of this.places) place.element.textContent = place.text;
    const open = widths();
    for (const place of this.places) place.element.textContent = place.cover;
    if (open.every((width, index) => Math.abs(width - covered[index]!) < 1)) return;
    const size = parseFloat(getComputedStyle(this.element).fontSize);
    this.places.forEach((place, index) => {
      place.element.classList.add("steady");
      place.element.style.width = `${Math.max(open[index]!, covered[index]!) / size}em`; // shrinks with the text
    });
  }

  get isLast(): boolean {
    return this.current === this.last;
  }

  /** Go on to the next part, or tell that the last one is read; `minimum` is the least time of the whole text in ms. */
  press(at: number, minimum: number): boolean {
    if (this.isDrawing) return false;
    if (this.current >= 0) {
      if (at < this.shownAt!) return false;
      if (this.isLast && at - this.onset! < minimum) return false;
      const line = this.mode === "centred" ? null : this.places.find((place) => place.part === this.current)!.line;
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
    if (this.mode === "moving_window") this.each(this.current, ({ cover, element }) => {
      element.textContent = cover;
      element.setAttribute("aria-hidden", "true");
    });
    this.current += 1;
    this.each(this.current, ({ text, element }) => {
      element.textContent = text;
      element.removeAttribute("aria-hidden");
    });
    if (this.mode === "centred") this.element.replaceChildren(...this.nodes(this.current));
    const { top, bottom } = this.places.find((place) => place.part === this.current)!.element.getBoundingClientRect();
    if (top < 0 || bottom > window.innerHeight) this.element.scrollIntoView({ block: "center" });
  }

  /** Show one part alone, or none. */
  present(part: number | null): void {
    if (part !== null) this.each(part, ({ text, element }) => (element.textContent = text));
    this.element.replaceChildren(...(part === null ? [] : this.nodes(part)));
  }

  private each(part: number, change: (place: Place) => void): void {
    for (const place of this.places) if (place.part === part) change(place);
  }
}

/** Whether lines fit a part of the page at their full size, and the width of the window in which they do, CSS pixels. */
export function roomFor(lines: readonly string[], language: string, place: HTMLElement): { needed: number; fits: boolean } {
  const text = new SelfPacedText(lines, wordsOf(lines), "moving_window", language);
  text.element.style.cssText = "position: absolute; visibility: hidden";
  place.append(text.element);
  text.arrange(() => {});
  const missing = Math.ceil(text.element.getBoundingClientRect().width) - place.clientWidth;
  text.element.remove();
  return { needed: innerWidth + missing, fits: missing <= 0 };
}

/** Whether the first letter with a direction runs from right to left, as `dir=auto` finds it. */
export function isRightToLeft(text: string): boolean {
  const first = /\p{L}/u.exec(text)?.[0] ?? "";
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(first);
}
