/** Makes a trial fit its window: lines by their width, solved examples by the height that the item and the answers leave. */

import { fitLines } from "./lines";

/** Least height of the examples, px; they scroll by themselves below what they need. */
const LEAST_HEIGHT = 120;
/** Sizes at which many examples are tried, rem: the smallest is still 13 px. */
const SIZES = [0.95, 0.85, 0.78, 0.72];

export function fitScreen(screen: HTMLElement): void {
  fitLines(screen);
  const list = screen.querySelector<HTMLElement>(".exemplars");
  if (list) fitExamples(list);
}

/** First set the examples closer and side by side, then smaller; where that is not enough, let them scroll so that the rest stays in view. */
function fitExamples(list: HTMLElement): void {
  const screen = list.closest<HTMLElement>(".trial");
  list.classList.remove("dense", "scrolls");
  screen?.classList.remove("close");
  list.removeAttribute("tabindex");
  for (const name of ["gridTemplateColumns", "maxHeight", "fontSize"] as const) list.style[name] = "";
  if (overflow() <= 0) return;
  list.classList.add("dense");
  screen?.classList.add("close");
  for (const size of SIZES) {
    list.style.fontSize = `${size}rem`;
    setSideBySide(list);
    if (overflow() <= 0) return;
  }
  list.style.fontSize = `${SIZES[0]}rem`;
  setSideBySide(list);
  const excess = overflow();
  list.classList.add("scrolls");
  list.tabIndex = 0; // the keyboard scrolls what has the focus
  list.style.maxHeight = `${Math.max(LEAST_HEIGHT, list.offsetHeight - excess)}px`;
}

/** As many columns as the widest example leaves room for. */
function setSideBySide(list: HTMLElement): void {
  list.style.gridTemplateColumns = "max-content";
  const widest = list.firstElementChild?.getBoundingClientRect().width ?? 0;
  const { columnGap, paddingLeft, paddingRight } = getComputedStyle(list);
  const [gap, room] = [parseFloat(columnGap), list.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)];
  const columns = Math.max(1, Math.floor((room + gap) / (widest + gap)));
  list.style.gridTemplateColumns = `repeat(${Math.min(columns, list.childElementCount)}, minmax(0, 1fr))`;
}

/** By how many px the page is taller than its window. */
function overflow(): number {
  return document.documentElement.scrollHeight - window.innerHeight;
}
