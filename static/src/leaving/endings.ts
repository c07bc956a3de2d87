/** How a visit ends: the one place that decides what each ending says, whether it debriefs, and what can still be done. */

import { element, prose } from "../dom";
import { fill, type Messages } from "../messages";
import type { Plan } from "../procedure/plan";
import type { Progress } from "../procedure/progress";
import type { Ending } from "../procedure/session";
import { day, type Receipt, receiptButton } from "./receipt";

/** Session that can still be deleted, by its own token. */
export interface Deletable {
  address: string;
  token: string;
  /** The last day (YYYY-MM-DD) on which it can be; null for as long as the page is open. */
  until: string | null;
}

/** What an ending needs of the session, which is over by then. */
export interface Parting {
  debrief: string | null;
  receipt: Receipt | null;
}

export const NO_PARTING: Parting = { debrief: null, receipt: null };

export interface Ended extends Parting {
  heading: string;
  text: string[];
  code: string | null;
  return_url: string | null;
  deletable: Deletable | null;
  /** The session was left and does not go on, in another tab either. */
  is_barred?: boolean;
  /** The session is held for review: opened again, the page asks whether it was released. */
  is_held?: boolean;
  /** The participant may think better of it and begin again. */
  may_return?: boolean;
}

/** What is said at an end beside what the ending itself says. */
export interface Said {
  /** The reason, in words. */
  words: string | null;
  completion_code?: string | null | undefined;
  return_url?: string | null | undefined;
  return_text?: string | undefined;
  held?: boolean | undefined;
}

/** Whether the answers given so far are kept. */
const KEEPS: Record<Exclude<Ending, "later" | "assigned">, boolean> = {
  completed: true,
  practice_failed: true,
  comprehension_failed: true,
  screened_out: true,
  stopped: true,
  declined: false,
  deleted: false,
};

export function endedBy(ending: Exclude<Ending, "later" | "assigned">, said: Said, parting: Parting, deletable: Deletable, messages: Messages): Ended {
  const back = said.return_text ?? "";
  const own = [said.words ?? "", back || messages.close_page];
  // Nobody is told to close the page while something remains to be done.
  const saved = (text: string): string => (back && text.endsWith(messages.close_page) ? text.slice(0, -messages.close_page.length).trim() : text);
  const told: Record<typeof ending, [heading: string, ...text: string[]]> = {
    completed: [messages.finished_title, saved(messages.finished_text)],
    practice_failed: [messages.practice_failed_title, ...own],
    comprehension_failed: [messages.screened_out_title, ...own],
    screened_out: [messages.screened_out_title, ...own],
    stopped: [messages.stopped_title, saved(messages.stopped_text)],
    declined: [messages.declined_title, saved(messages.declined_text), messages.declined_more],
    deleted: [messages.deleted_title, saved(messages.deleted_text)],
  };
  const [heading, ...text] = told[ending];
  const { receipt } = parting;
  return {
    heading,
    text: [...text, ...(text.includes(back) ? [] : [back])].filter(Boolean),
    debrief: ending === "completed" ? null : parting.debrief, // which who finishes has read
    receipt: receipt && { ...receipt, participant: KEEPS[ending] ? receipt.participant : null, agreed: ending === "declined" ? false : receipt.agreed },
    code: said.completion_code ?? null,
    return_url: said.return_url ?? null,
    deletable: KEEPS[ending] ? deletable : null,
    is_held: said.held ?? false,
    may_return: ending === "declined",
  };
}

/** What a session's reader keeps of it, or may keep. */
export function partingOf(plan: Plan, progress: Progress, about: Pick<Receipt, "participant" | "direction" | "title">): Parting {
  const consent = plan.screens.find((screen) => screen.kind === "consent");
  const debrief = plan.screens.find((screen) => screen.kind === "debrief");
  const place = consent ? plan.screens.indexOf(consent) : -1;
  const agreed = progress.remark("agreed") ?? (place >= 0 && progress.isOver(place) ? true : null);
  const { study, language } = plan;
  const receipt = consent ? { ...about, study, language, html: consent.html, version: consent.version, agreed } : null;
  return { debrief: debrief?.html ?? null, receipt };
}

/** What can still be done at the end: read the debriefing, keep the consent form, have the answers deleted now or later. */
export function keepsakes(ended: Ended, language: string, messages: Messages, onDelete: () => void, now = new Date()): HTMLElement | null {
  const { receipt, deletable } = ended;
  const parts: HTMLElement[] = [];
  // who declined may think better of it and take part: the debriefing is opened by those only who want to read it
  if (ended.may_return && ended.debrief) {
    const title = messages.debrief_title;
    parts.push(element("details", {}, element("summary", {}, title), prose(ended.debrief, language, title)));
  }
  if (receipt) parts.push(receiptButton(receipt, messages));
  const isOpen = deletable !== null && (deletable.until === null || isoDay(now) <= deletable.until);
  if (isOpen) {
    const until = deletable.until && fill(messages.withdraw_until, { until: day(deletable.until, language) });
    const participant = receipt?.participant;
    const later = participant && fill(messages.withdraw_later, { participant });
    const words = [until, later].filter(Boolean).join(" ");
    const button = element("button", { type: "button", class: "quiet" }, messages.delete_now);
    button.addEventListener("click", onDelete);
    parts.push(element("div", { class: "withdraw" }, words ? element("p", {}, words) : null, button));
  }
  return parts.length > 0 ? element("div", { class: "keepsakes" }, ...parts) : null;
}

function isoDay(now: Date): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}
