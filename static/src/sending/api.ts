/**
 * The server's HTTP interface (docs/contracts.md).
 *
 * Every JSON reply is returned, whatever its status. No reply throws, and so does one that is not JSON: a gateway's error
 * page or a hotel's login page is not the study's server, and must neither confirm an answer nor refuse it.
 */

import type { Answer, Plan, TrialKey, Verdict } from "../procedure/plan";
import type { Answered } from "../procedure/session";
import type { OutboxItem } from "./outbox";

const PATIENCE_MS = 20_000;
const KEEPALIVE_BYTES = 30_000;

export interface Reply<T> {
  status: number;
  /** Of a refusal: what it is called, what is the matter, and what to do. */
  body: Partial<T> & { title?: string; error?: string; mend?: string };
}

/** What a page is told of its session when it may not go on with it. */
export interface Refusal {
  state: string;
  may_take: boolean;
  /** Of a session that has ended: what its reader was to be told at the end, and what they agreed to. */
  debrief: string | null;
  consent: { html: string; version: string } | null;
  participant: string | null;
}

export interface Resumed {
  session_id: string;
  plan: Plan;
  done: TrialKey[];
  shown: TrialKey[];
  /** Answers on which it depends what is asked later. */
  given?: Record<string, Answer>;
  state: string;
  /** The number by which the researchers know the participant. */
  participant: string | null;
}

export interface Opened extends Resumed {
  token: string;
}

/** What the server says to something sent. */
export interface Taken {
  elsewhere: boolean;
  /** What is told of a trial, where its block tells anything. */
  feedback: Verdict | null;
}

/** What the server says to a screen's answers. */
export interface Judged {
  eligible: boolean;
  /** How it goes on behind questions about instructions. */
  then: Answered["then"];
  ended: string | null;
}

export interface Finished {
  completion_code: string | null;
  stored: number;
  state: string;
  return_url: string | null;
  return_by_itself: boolean;
  return_text: string;
  /** The session is to be reviewed before it is paid. */
  held: boolean;
}

export class Api {
  constructor(
    private readonly base: string,
    /** The name of this tab. */
    private readonly tab: string,
  ) {}

  /** What a station's start screen asks: how it stands with a number, or to end what was left. */
  station<T>(what: "start" | "end", body: object): Promise<Reply<T>> {
    return ask<T>("POST", `${this.base}/station/${what}`, null, body);
  }

  sessionAddress(session_id: string): string {
    return `${this.base}/sessions/${session_id}`;
  }

  open(body: object): Promise<Reply<Opened & Refusal>> {
    return ask("POST", `${this.base}/sessions`, null, body, this.tab);
  }

  /** Go on with a session in this tab. */
  resume(address: string, token: string, take: boolean): Promise<Reply<Resumed & Refusal>> {
    return ask("POST", `${address}/resume`, token, { take }, this.tab);
  }

  look(address: string, token: string): Promise<Reply<Resumed & Refusal>> {
    return ask("GET", address, token);
  }

  /** Hold the session in this tab, or let go of it. */
  hold(address: string, token: string, told: object): Promise<Reply<{ state: string }>> {
    return ask("POST", `${address}/lease`, token, told, this.tab);
  }

  answers(address: string, token: string, body: object): Promise<Reply<Judged>> {
    return ask("POST", `${address}/answers`, token, body, this.tab);
  }

  finish(address: string, token: string, trials: number, completed: boolean): Promise<Reply<Finished>> {
    return ask("POST", `${address}/finish`, token, { trials, completed }, this.tab);
  }

  /** Send an item of any session; only this page's own session (`own`) is held by it. */
  send(item: OutboxItem, own: string | null): Promise<Reply<Taken>> {
    return ask("POST", `${item.session}/${item.kind}`, item.token, item.body, item.session === own ? this.tab : null);
  }
}

async function ask<T>(
  method: string,
  address: string,
  token: string | null,
  body?: object,
  tab: string | null = null,
): Promise<Reply<T>> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers: Record<string, string> = { Accept: "application/json" };
  if (token) headers["Authorization"] = `Bearer ${token}`;
  if (tab) headers["X-Wrods-Lease"] = tab;
  if (text !== undefined) Object.assign(headers, { "Content-Type": "application/json", "X-Wrods": "1" });
  const response = await fetch(address, {
    method,
    headers,
    body: text ?? null,
    credentials: "same-origin",
    // Lets the last answers leave although the page is being closed; browsers limit how much may.
    keepalive: text !== undefined && text.length < KEEPALIVE_BYTES,
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const received: unknown = await response.json();
  if (typeof received !== "object" || received === null) throw new Error(`${address} did not reply with a JSON object`);
  return { status: response.status, body: received as Reply<T>["body"] };
}
