/** The copy of a session's answers that a page hands out when the server does not confirm them, and its code. */

import type { OutboxItem } from "./outbox";

export interface AnswersCopy {
  wrods: 1;
  kind: "answers";
  study: string;
  session_id: string;
  token: string;
  items: { kind: OutboxItem["kind"]; body: Record<string, unknown> }[];
}

export function sessionId(address: string): string {
  return address.split("/").at(-1) ?? "";
}

/** Everything that the page holds of a session, whether or not the server has it: taking it twice changes nothing. */
export function answersCopy(study: string, address: string, token: string, items: readonly OutboxItem[]): AnswersCopy {
  return {
    wrods: 1,
    kind: "answers",
    study,
    session_id: sessionId(address),
    token,
    items: items.map(({ kind, body }) => ({ kind, body })),
  };
}

/** A code that names the session and says nothing of whether its answers arrived: the researchers look that up. */
export function reviewCode(address: string): string {
  return `M-${sessionId(address).slice(0, 8).toUpperCase()}`;
}

/** Offer a file for download. */
export function saveFile(name: string, type: string, contents: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([contents], { type: `${type};charset=utf-8` }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
