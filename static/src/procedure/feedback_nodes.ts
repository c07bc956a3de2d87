/** What is told after a trial: found out here in practice, by the server in blocks, in the words of the plan. */

import { fill } from "../messages";
import { type FeedbackData, FeedbackPlugin } from "../plugins/feedback";
import type { TrialPayload } from "./payload";
import type { Feedback, PlannedTrial, Verdict } from "./plan";
import { isCorrect } from "./practice";
import type { Conduct, Node } from "./session";

/** What is told of a practice trial, by the key that its plan holds. */
export function judgeHere(feedback: Feedback, trial: PlannedTrial, payload: TrialPayload, language: string): Verdict | null {
  if (payload.timed_out && feedback.late) return "late";
  const correct = isCorrect(trial, payload.response_raw, language);
  if (!feedback.accuracy || correct === null) return null;
  return correct ? "correct" : "incorrect";
}

/** What is told of a trial of a block: by the clock, or by the server's word; nothing where that does not come in time. */
export async function judgeThere(
  feedback: Feedback,
  trial: PlannedTrial,
  payload: TrialPayload,
  language: string,
  { recorder, jsPsych }: Conduct,
): Promise<Verdict | null> {
  const { trial_index, attempt } = payload;
  const isKnownHere = trial.accepted !== undefined; // in a preview
  if (trial.is_attention_check) return null;
  if ((payload.timed_out && feedback.late) || isKnownHere || !feedback.accuracy) return judgeHere(feedback, trial, payload, language);
  jsPsych.getDisplayElement().replaceChildren(); // nobody looks at an answered trial while the server is asked
  const asked = performance.now();
  const verdict = await recorder.verdict(payload.client_uuid);
  if (verdict === "unheard") {
    const wait_ms = performance.now() - asked;
    await recorder.event("feedback", { trial_index, attempt, told: null, shown: false, reason: "no_connection", wait_ms });
    return null;
  }
  return verdict;
}

/** What is told of a trial, behind its further answers. */
export function feedbackNode(feedback: Feedback, trial_index: number, language: string, { messages, progress, recorder }: Conduct): Node {
  const told = (): Verdict => progress.judgedOf(trial_index)!.verdict!;
  const text = (): string | null => {
    const { verdict, answer } = progress.judgedOf(trial_index)!;
    if (verdict !== "correct" && answer !== null) return fill(feedback.words.answer, { answer });
    return feedback.words[told()].text;
  };
  const node = {
    type: FeedbackPlugin,
    told,
    heading: () => feedback.words[told()].title,
    text,
    for_ms: feedback.for_ms,
    language,
    messages,
    on_finish: async ({ told, onset_ts, duration }: FeedbackData) => {
      const { attempt } = progress.judgedOf(trial_index)!;
      await recorder.event("feedback", { trial_index, attempt, told, shown: true, reason: null, onset_ts, duration });
    },
  };
  return { timeline: [node], conditional_function: () => progress.judgedOf(trial_index) !== null };
}
