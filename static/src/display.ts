/**
 * How stimuli look whatever the reader's system prefers: while trials are shown the page keeps the study's polarity, the
 * screens around them follow the system. What the system asks for is recorded, since a page cannot undo all of it.
 */

export type Polarity = "dark_on_light" | "light_on_dark";

/** What the system does to pages: dark mode, a palette of its own (high contrast), inverted colours. */
export interface SystemDisplay {
  prefers_dark: boolean;
  forced_colors: boolean;
  /** Null where the browser does not say. */
  inverted_colors: boolean | null;
}

const QUERIES = ["(prefers-color-scheme: dark)", "(forced-colors: active)", "(inverted-colors: inverted)"] as const;

let planned: Polarity = "dark_on_light";

/** Set the polarity that stimuli have from now on. */
export function planPolarity(polarity: Polarity): void {
  planned = polarity;
}

/** Give the whole page the polarity of the stimuli, until `followSystem`. */
export function holdPolarity(): void {
  document.documentElement.dataset["polarity"] = planned;
}

export function followSystem(): void {
  delete document.documentElement.dataset["polarity"];
}

export function systemDisplay(): SystemDisplay {
  const [dark, forced, inverted] = QUERIES.map((query) => matchMedia(query));
  // A query that the browser does not know has neither this nor the opposite value.
  const isKnown = inverted!.matches || matchMedia("(inverted-colors: none)").matches;
  return { prefers_dark: dark!.matches, forced_colors: forced!.matches, inverted_colors: isKnown ? inverted!.matches : null };
}

/** Tell of each change of what the system asks for, such as a dark mode that begins in the evening. */
export function onSystemDisplay(changed: (display: SystemDisplay) => void, signal: AbortSignal): void {
  for (const query of QUERIES) matchMedia(query).addEventListener("change", () => changed(systemDisplay()), { signal });
}
