/** What a session's timeline holds on to: where what happens goes, and who is told. */

import type { JsPsych } from "jspsych";
import type { Messages } from "../messages";
import type { OwnPluginClass } from "../plugins/own";
import type { TrialPayload } from "./payload";
import type { Verdict } from "./plan";
import type { Progress } from "./progress";

/** Where what happens goes: the outbox in a session, nowhere in a preview. */
export interface Recorder {
  trial(payload: TrialPayload): Promise<void>;
  event(kind: string, detail: Record<string, unknown>): Promise<void>;
  /** What the server told of a trial that was recorded: null for nothing, `unheard` where no word came in time. */
  verdict(client_uuid: string): Promise<Verdict | null | "unheard">;
  /** Send a screen's answers and wait for the server's word on whether the session goes on. */
  answers(screen: string, answers: Readonly<Record<string, unknown>>): Promise<Answered>;
  /** Told before a trial is drawn, so that the server knows of it even where nothing of it arrives. */
  shown(trial_index: number, attempt: number): void;
}

/** What the server says to answers: `then` is there where they are about instructions, or decide on the reader's group. */
export interface Answered {
  eligible: boolean;
  then: "go_on" | "again" | "end" | "assigned" | "full" | null;
}

export type Ending =
  | "completed"
  | "declined"
  | "practice_failed"
  | "comprehension_failed"
  | "screened_out"
  | "stopped"
  | "deleted"
  /** The reader's group is known: the session continues with its whole plan. */
  | "assigned"
  | "later";

export interface Conduct {
  jsPsych: Pick<JsPsych, "abortExperiment" | "getDisplayElement">;
  messages: Messages;
  progress: Progress;
  recorder: Recorder;
  /** The plugins of the lab's own trial types. */
  plugins: Readonly<Record<string, OwnPluginClass>>;
  /** Whether typed answers may come from dictation, voice control or an on-screen keyboard. */
  isInputAssisted: boolean;
  /** Told after every answer, with the share of trials answered. */
  onShare: (share: number) => void;
  /** Told when the reader agrees to take part. */
  onAgreed: () => void;
  /** Told when a trial was taken off the screen unanswered, because the reader asked to stop. */
  onCut: () => void;
  /** Told when the session ends early. */
  onEnd: (ending: Exclude<Ending, "completed">, words: string | null) => void;
  /** What saves a copy of the consent form. */
  receipt: () => HTMLElement | null;
}

export type Timeline = Exclude<Parameters<JsPsych["run"]>[0], unknown[]>;
export type Node = Exclude<Timeline["timeline"][number], unknown[]>;
