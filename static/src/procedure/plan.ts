/** The session plan that `experiment.procedure` makes (docs/contracts.md), as a browser meets it. */

import type { Polarity } from "../display";
import type { MediaFile } from "../media";
import type { Style } from "../plugins/lines";
import type { AnswerStep, ChooseStep, RateStep, Step } from "../generated/trials";

export interface Exemplar {
  text: string;
  label: string;
}

/** A step as a browser meets it; what labels stand for (`responses`) and how answers are read is there in practice only. */
export interface OwnStep {
  step: "own";
  /** The lab's own trial type; its plugin is given what else the step holds. */
  type: string;
  answer_field: string | null;
  caption: string | null;
  text: string | null;
  lines: string[] | null;
}

export type ShownStep = (
  | OwnStep
  | Exclude<Step, ChooseStep | RateStep | AnswerStep>
  | (Omit<ChooseStep, "responses"> & Partial<Pick<ChooseStep, "responses">>)
  | (Omit<RateStep, "responses" | "decimal"> & Partial<RateStep>)
  | (Omit<AnswerStep, "read_as" | "decimal"> & Partial<AnswerStep>)
) & {
  media?: MediaFile[];
  /** The picture of each label, where the choices are pictures. */
  pictures?: MediaFile[];
  /** Whether any number of the labels is ticked. */
  several?: boolean;
  style?: Style;
};

/** A trial; `answer` is there for practice trials (and in previews) only, and nothing tells which item it shows. */
export interface PlannedTrial {
  trial_index: number;
  block: string;
  is_practice: boolean;
  is_attention_check?: boolean;
  /** The name of a step whose answer is a further one about the item of the trial before. */
  step_name?: string;
  answer?: string;
  /** Every answer that counts as right; in practice only. */
  accepted?: string[];
  exemplars?: Exemplar[] | null;
  fixation_ms: number | null;
  interval_ms: number | null;
  steps: ShownStep[];
}

export interface Page {
  html: string;
  minimum_ms?: number;
}

/** What the reader's browser and screen must be; null where anything goes. */
export interface DeviceRules {
  device: "computer" | null;
  browsers: string[] | null;
  width: number | null;
  height: number | null;
  refresh_hz: [low: number, high: number] | null;
}

/** What is entered in a question; null for nothing. */
export type Answer = string | number | string[] | null;

/** Which answers to an earlier question lead to another one. */
export type Condition = { values: string[] } | { from: number; to: number };

export interface Question {
  name: string;
  ask: string;
  type: "text" | "number" | "choice" | "several" | "scale" | "yes_no" | "vocabulary" | "matrix" | "slider";
  options: { value: string; label: string }[] | null;
  from: number | null;
  to: number | null;
  /** What the ends of a scale mean. */
  low: string | null;
  high: string | null;
  optional: boolean;
  /** The rows of a matrix, each with an answer of its own. */
  rows?: { name: string; text: string }[];
  /** The question is asked only after these answers to earlier ones. */
  only?: Record<string, Condition>;
}

/** Whether earlier answers lead to a question; what was not asked has no answer. */
export function isAsked({ only = {} }: Question, given: Readonly<Record<string, Answer | undefined>>): boolean {
  return Object.entries(only).every(([name, condition]) => {
    const answer = given[name];
    if (answer === undefined || answer === null) return false;
    if ("from" in condition) return Number(answer) >= condition.from && Number(answer) <= condition.to;
    return [answer].flat().some((one) => condition.values.includes(String(one)));
  });
}

export type Verdict = "correct" | "incorrect" | "late";

/** What readers are told after a trial, and in which words. */
export interface Feedback {
  accuracy: boolean;
  late: boolean;
  /** How long it stands, ms; null until the reader goes on. */
  for_ms: number | null;
  words: Record<Verdict, { title: string; text: string | null }> & {
    /** What tells the right answer, in practice. */
    answer: string;
  };
}

/** When questions about instructions are answered well enough; which answers are right only the server knows. */
export interface Criterion {
  needed: number;
  rounds: number;
  if_failed: "end" | "go_on";
}

export type ConsentScreen = { kind: "consent"; html: string; version: string };
export type InstructionsScreen = { kind: "instructions"; pages: Page[] };
export type PracticeScreen = {
  kind: "practice";
  block: string;
  feedback: Feedback | null;
  pass: number | null;
  /** The number of latest trials that the criterion is about; all without it. */
  of_last?: number;
  attempts: number | null;
  trials: PlannedTrial[];
};
export type BlockScreen = {
  kind: "block";
  block: string;
  break_every: number | null;
  break_minimum_ms?: number;
  feedback?: Feedback | null;
  trials: PlannedTrial[];
};
export type BreakScreen = { kind: "break"; html: string | null; minimum_ms?: number };
export type DeviceScreen = { kind: "device" } & DeviceRules;
export type QuestionsScreen = { kind: "questions"; name: string; screening: boolean; comprehension?: Criterion | null; questions: Question[]; is_answered?: boolean };
export type FullScreenScreen = { kind: "full_screen" };
export type ScreenSizeScreen = { kind: "screen_size"; character_mm: number };
export type DebriefScreen = { kind: "debrief"; html: string };

export type Screen =
  | ConsentScreen
  | DeviceScreen
  | QuestionsScreen
  | FullScreenScreen
  | ScreenSizeScreen
  | InstructionsScreen
  | PracticeScreen
  | BlockScreen
  | BreakScreen
  | DebriefScreen;

export interface Plan {
  study: string;
  title: string;
  language: string;
  /** Language of the items, where it is not the study's. */
  items_language?: string;
  /** What becomes of a session that is left, and for how long it may be left, ms (null: ever). */
  if_interrupted?: { then: "resume" | "restart" | "block"; within_ms: number | null };
  display?: { polarity: Polarity };
  assistive_input?: boolean;
  /** The hash of the plugin of each of the lab's own trial types. */
  plugins?: Record<string, string>;
  /** The last day (YYYY-MM-DD) on which a session that has ended can be deleted. */
  withdraw_until?: string;
  screens: Screen[];
}

export function trialsOf(screen: Screen): PlannedTrial[] {
  return screen.kind === "practice" || screen.kind === "block" ? screen.trials : [];
}

export function isFurther(trial: PlannedTrial | undefined): boolean {
  return trial?.step_name !== undefined;
}

/** The index of the trial that a further answer is about; of any other trial its own. */
export function aboutTrial(trials: readonly PlannedTrial[], place: number): number {
  while (isFurther(trials[place])) place -= 1;
  return trials[place]!.trial_index;
}

/** One showing of a trial. */
export type TrialKey = [trial_index: number, attempt: number];

/** Every stimulus text of the plan, so that the letters it needs are loaded before the first trial. */
export function stimulusTexts(plan: Plan): string {
  const texts = plan.screens.flatMap(trialsOf).flatMap((trial) => [
    ...(trial.exemplars ?? []).map((exemplar) => exemplar.text),
    ...trial.steps.flatMap((step) => [
      step.text,
      step.caption,
      ...("labels" in step ? (step.labels ?? []) : []),
      ...("options" in step ? (step.options ?? []) : []),
      ...(step.step === "prime" ? [step.mask, step.backward_mask] : []),
      ...(step.step === "read" && step.as !== "whole" ? ["-", ...(step.foils ?? [])] : []),
    ]),
  ]);
  return [...new Set(texts.filter((text) => text !== null).join(""))].join("");
}

/** Every picture, sound and film of the plan. */
export function mediaFiles(plan: Plan): MediaFile[] {
  return plan.screens.flatMap(trialsOf).flatMap((trial) => trial.steps.flatMap((step) => [...(step.media ?? []), ...(step.pictures ?? [])]));
}
