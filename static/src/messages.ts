/** The page's own texts, which come with the page; what the study itself says comes from its plan. */

import type english from "../../experiment/languages/data/en.json";

export type Messages = Record<keyof typeof english.texts, string>;

/** Put values into the `{named}` places of a message; on pages from right to left, dates and ids keep their own order. */
export function fill(message: string, values: Record<string, string | number>): string {
  const isolated = document.documentElement.dir === "rtl" ? (value: string | number) => `\u2068${value}\u2069` : String;
  return message.replace(/\{(\w+)\}/g, (place, name: string) => (name in values ? isolated(values[name]!) : place));
}

/** A refusal of the server; those that a reader may be told have a title or a state. */
interface Refusal {
  title?: string;
  state?: unknown;
  error?: string;
  mend?: string;
}

/** What a refusal tells its reader: the server's words where they are the study's, else whom to ask. */
export function refusalText(status: number, body: Refusal, messages: Messages): string[] {
  const isForReaders = Boolean(body.state ?? body.title);
  const said = isForReaders ? [body.error, body.mend] : [messages.ask_us, `HTTP ${status}`];
  return said.filter((one): one is string => Boolean(one));
}
