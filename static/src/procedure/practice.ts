/** Practice: whether an answer is right, told at once, and whether a pass through practice is good enough. */

import type { Region } from "../plugins/self_paced";
import { isFurther, type PlannedTrial, type PracticeScreen } from "./plan";

/** Plain form for comparing typed answers: composed letters, single spaces, no case, no closing full stop. */
function plain(text: string, language: string): string {
  return text.normalize("NFC").trim().replace(/\s+/g, " ").replace(/[.!?。！？؟]$/, "").toLocaleLowerCase(language);
}

/** Whether an answer to a practice trial is right; null where the plan does not hold its answer. */
export function isCorrect(trial: PlannedTrial, response: string | null, language: string): boolean | null {
  if (trial.answer === undefined || trial.answer === null) return null;
  if (response === null) return false;
  const last = trial.steps.at(-1);
  if (last?.step === "choose") {
    const { labels, responses } = last;
    const meant = (last.several ? response.split(", ") : [response]).map((label) => responses?.[labels.indexOf(label)] ?? label);
    const right = rightAnswers(trial);
    return meant.length === right.length && right.every((answer) => meant.includes(answer));
  }
  const right = trial.accepted ?? [trial.answer];
  return right.some((answer) => plain(response, language) === plain(answer, language));
}

/** The correct answers to a choice: one, or all of a set. */
function rightAnswers(trial: PlannedTrial): string[] {
  const answer = trial.answer ?? "";
  return trial.steps.at(-1)?.several ? answer.split("|").map((one) => one.trim()) : [answer];
}

function isMaze(trial: PlannedTrial): boolean {
  const last = trial.steps.at(-1);
  return last?.step === "read" && last.as === "maze";
}

/** Whether every word of a maze was chosen at once; null where a trial ends otherwise. */
export function isThrough(trial: PlannedTrial, regions: readonly Region[]): boolean | null {
  const last = trial.steps.at(-1);
  if (!isMaze(trial) || last?.step !== "read") return null;
  return regions.length === last.parts?.length && regions.every((region) => region.is_correct);
}

/** The right answer as the reader would have given it: the label (and option) that stands for it, or the text. */
export function rightAnswer(trial: PlannedTrial): string {
  const answer = trial.answer ?? "";
  const last = trial.steps.at(-1);
  if (last?.step !== "choose") return answer;
  const shown = rightAnswers(trial).map((right) => {
    const index = last.responses?.indexOf(right) ?? -1;
    const option = last.options?.[index];
    return option ? `${last.labels[index]}: ${option}` : (last.labels[index] ?? right);
  });
  return shown.join(", ");
}

export interface PracticeOutcome {
  right: number;
  total: number;
  /** How many have to be right; null where the study sets no criterion. */
  needed: number | null;
  then: "go on" | "again" | "end";
}

/** How a pass through practice stands: of all trials that ask, or of the last ones where the criterion is about these. */
export function practiceOutcome(screen: PracticeScreen, pass: number, correct: Record<number, boolean>): PracticeOutcome {
  const own = screen.trials.filter((trial) => !isFurther(trial));
  const asked = own.filter((trial) => isMaze(trial) || trial.steps.at(-1)?.step !== "read");
  const answered = asked.filter((trial) => trial.trial_index in correct);
  const total = screen.of_last ?? asked.length;
  const right = answered.slice(-total).filter((trial) => correct[trial.trial_index]).length;
  if (screen.pass === null || screen.pass === undefined) return { right, total, needed: null, then: "go on" };
  const needed = Math.ceil(screen.pass * total - 1e-9);
  if (right >= needed && answered.length >= total) return { right, total, needed, then: "go on" };
  return { right, total, needed, then: pass < (screen.attempts ?? 1) ? "again" : "end" };
}

/** Whether practice ends before all its trials, because the last ones were good enough. */
export function isEarlyEnough(screen: PracticeScreen, pass: number, correct: Record<number, boolean>): boolean {
  return Boolean(screen.of_last) && practiceOutcome(screen, pass, correct).then === "go on";
}
