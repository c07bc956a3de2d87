/** The page's own texts, which come with the page; what the study itself says comes from its plan. */

import type english from "../../experiment/languages/data/en.json";

export type Messages = Record<keyof typeof english.texts, string>;

/** Put values into the `{named}` places of a message. */
export function fill(message: string, values: Record<string, string | number>): string {
  return message.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}
