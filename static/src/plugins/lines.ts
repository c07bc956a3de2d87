/**
 * Texts in exactly the lines of the plan: a line that does not fit the window makes the text smaller. A text to read never wraps; one
 * that is judged wraps rather than become too small to read, as on a phone.
 */

import { element } from "../dom";

/** Share of its size below which no text is drawn; the page scrolls then. */
const SMALLEST = 0.3;

/** Size in pixels below which a text wraps that is not read for its times. */
const READABLE_PX = 14;

/** The text of an element without and with the planned line breaks. */
const written = new WeakMap<HTMLElement, { text: string; lines: string }>();

/** A text of the study in its planned lines, or as it stands where the plan has none. */
export function studyLines(text: string, lines: readonly string[], language: string): HTMLElement {
  const inLines = lines.length > 0 ? lines.join("\n") : text;
  const shown = blankLines(language, inLines);
  written.set(shown, { text, lines: inLines });
  return shown;
}

/** The block that holds lines of a study: kept as written, each line running in its own direction. */
export function blankLines(language: string, ...children: (Node | string)[]): HTMLElement {
  return element("p", { class: "stimulus", lang: language, dir: "auto", translate: "no" }, ...children);
}

/** The look of a step's text, as the plan says it. */
export interface Style {
  font?: "mono" | "sans";
  colour?: string;
  background?: string;
  /** A share of the usual size, such as `150%`. */
  size?: string;
}

/** Give a text the look that its step has. */
export function styled<E extends HTMLElement>(text: E, style: Style | null | undefined): E {
  if (!style) return text;
  if (style.font) text.style.fontFamily = `var(--${style.font})`;
  if (style.colour) text.style.color = style.colour;
  if (style.background) {
    text.style.backgroundColor = style.background;
    text.style.padding = "0.4em 0.6em";
  }
  if (style.size) text.style.setProperty("--stimulus-share", String(parseFloat(style.size) / 100));
  return text;
}

/** Make the texts in a part of the page as small as their longest line needs, and mark by how much. */
export function fitLines(root: ParentNode): void {
  for (const text of root.querySelectorAll<HTMLElement>(".stimulus")) {
    const own = text.closest(".trial.read") ? undefined : written.get(text);
    text.style.fontSize = "";
    delete text.dataset["scale"];
    if (text.classList.contains("wrapped")) {
      text.classList.remove("wrapped");
      text.textContent = own?.lines ?? text.textContent;
    }
    const room = text.parentElement?.clientWidth ?? 0;
    const needed = text.offsetWidth;
    if (room <= 0 || needed <= room) continue;
    const full = parseFloat(getComputedStyle(text).fontSize);
    let scale = Math.max(SMALLEST, Math.floor((1000 * room) / needed) / 1000);
    if (own && scale * full < READABLE_PX && READABLE_PX < full) {
      scale = READABLE_PX / full;
      text.classList.add("wrapped");
      text.textContent = own.text;
    }
    text.style.fontSize = `${scale * full}px`;
    text.dataset["scale"] = String(scale);
  }
}

/** The smallest scale to which a text in this part of the page was brought; null where all stand in full size. */
export function smallestScale(root: ParentNode): number | null {
  const scales = [...root.querySelectorAll<HTMLElement>(".stimulus[data-scale]")].map((text) => Number(text.dataset["scale"]));
  return scales.length > 0 ? Math.min(...scales) : null;
}
