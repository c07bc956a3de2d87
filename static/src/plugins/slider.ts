/** A line on which a reader marks a place: there is no handle, and no answer, until it is touched. */

import { element } from "../dom";

export interface SliderRange {
  from: number;
  to: number;
  /** What the ends of the line mean. */
  low: string | null;
  high: string | null;
}

export interface Slider {
  element: HTMLElement;
  input: HTMLInputElement;
  /** The marked number; null until the line was touched. */
  value: () => number | null;
}

/** `unanswered` is what a screen reader says in place of a number before the line was touched. */
export function slider(id: string, { from, to, low, high }: SliderRange, unanswered: string): Slider {
  const step = Number.isInteger(from) && Number.isInteger(to) ? "1" : "any";
  const input = element("input", { id, type: "range", class: "untouched", min: String(from), max: String(to), step });
  input.value = String((from + to) / 2);
  let isTouched = false;
  const tell = (): void => {
    const end = input.value === input.min ? low : input.value === input.max ? high : null;
    input.setAttribute("aria-valuetext", isTouched ? [input.value, end].filter(Boolean).join(": ") : unanswered);
  };
  const touch = (): void => {
    isTouched = true;
    input.classList.remove("untouched");
    tell();
  };
  tell();
  input.addEventListener("input", touch);
  // a click exactly on the middle changes no value, and a tap there is no click
  for (const kind of ["pointerup", "click"]) {
    input.addEventListener(kind, () => {
      if (isTouched) return;
      touch();
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }
  const ends = [low, high].map((words) => element("span", { class: "end", dir: "auto" }, words));
  const made = element("div", { class: "line-scale" }, input, low || high ? element("div", { class: "ends" }, ...ends) : null);
  return { element: made, input, value: () => (isTouched ? Number(input.value) : null) };
}
