/** Texts in exactly the lines of the plan: a line that does not fit the window makes the text smaller, it never wraps. */

import { element } from "../dom";

/** Share of its size below which no text is drawn; the page scrolls then. */
const SMALLEST = 0.3;

/** A text of the study in its planned lines, or as it stands where the plan has none. */
export function studyLines(text: string, lines: readonly string[], language: string): HTMLElement {
  return blankLines(language, lines.length > 0 ? lines.join("\n") : text);
}

/** The block that holds lines of a study: kept as written, each line running in its own direction. */
export function blankLines(language: string, ...children: (Node | string)[]): HTMLElement {
  return element("p", { class: "stimulus", lang: language, dir: "auto", translate: "no" }, ...children);
}

/** Make the texts in a part of the page as small as their longest line needs, and mark by how much. */
export function fitLines(root: ParentNode): void {
  for (const text of root.querySelectorAll<HTMLElement>(".stimulus")) {
    text.style.fontSize = "";
    delete text.dataset["scale"];
    const room = text.parentElement?.clientWidth ?? 0;
    const needed = text.offsetWidth;
    if (room <= 0 || needed <= room) continue;
    const scale = Math.max(SMALLEST, Math.floor((1000 * room) / needed) / 1000);
    text.style.fontSize = `${scale * parseFloat(getComputedStyle(text).fontSize)}px`;
    text.dataset["scale"] = String(scale);
  }
}

/** Whether lines fit a part of the page at their full size, and the width of the window in which they do, CSS pixels. */
export function roomFor(lines: readonly string[], language: string, place: HTMLElement): { needed: number; fits: boolean } {
  const text = blankLines(language, lines.join("\n"));
  text.style.cssText = "position: absolute; visibility: hidden";
  place.append(text);
  const missing = Math.ceil(text.getBoundingClientRect().width) - place.clientWidth;
  text.remove();
  return { needed: innerWidth + missing, fits: missing <= 0 };
}

/** The smallest scale to which a text in this part of the page was brought; null where all stand in full size. */
export function smallestScale(root: ParentNode): number | null {
  const scales = [...root.querySelectorAll<HTMLElement>(".stimulus[data-scale]")].map((text) => Number(text.dataset["scale"]));
  return scales.length > 0 ? Math.min(...scales) : null;
}
