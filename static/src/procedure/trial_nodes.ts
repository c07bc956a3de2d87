/** The jsPsych nodes of one trial: interval and cross, then each step by its plugin, gathered into one row. */

import { uuid } from "../identity";
import { library } from "../media";
import { AnswerPlugin } from "../plugins/answer";
import { ChoosePlugin } from "../plugins/choose";
import { FixationPlugin } from "../plugins/fixation";
import { smallestScale } from "../plugins/lines";
import { OwnPlugin } from "../plugins/own";
import { PrimePlugin } from "../plugins/prime";
import { RatePlugin } from "../plugins/rate";
import { ReadPlugin } from "../plugins/read";
import { RecoverPlugin } from "../plugins/recover";
import { interruption } from "../timing/interruption";
import { type StepData, type TrialPayload, trialPayload } from "./payload";
import type { Plan, PlannedTrial, ShownStep } from "./plan";
import type { Conduct, Node } from "./session";

export function trialNodes(
  trial: PlannedTrial,
  plan: Pick<Plan, "language" | "items_language">,
  conduct: Conduct,
  onAnswer: (payload: TrialPayload, isSimulated: boolean) => void | Promise<void>,
): Node[] {
  const { progress, recorder } = conduct;
  let attempt = 0;
  let steps: StepData[] = [];
  const noteScale = (): void => {
    const scale = smallestScale(document);
    if (scale !== null) void recorder.event("text_scaled", { trial_index: trial.trial_index, scale });
  };
  const nodes = trial.steps.map((step, index): Node => ({
    ...stepNode(step, trial, plan, conduct),
    on_start: () => {
      if (index > 0) return;
      attempt = progress.show(trial);
      recorder.shown(trial.trial_index, attempt);
      steps = [];
    },
    on_load: noteScale,
    on_finish: async (data: StepData) => {
      const isLast = index === trial.steps.length - 1;
      if (interruption.takeCut() || (!isLast && interruption.isOn)) {
        conduct.onCut();
        conduct.jsPsych.abortExperiment();
        return;
      }
      steps.push(data);
      const starts = library.takeStarts();
      if (starts.length > 0) void recorder.event("media", { trial_index: trial.trial_index, attempt, step: index, starts });
      if ("composed_chars" in data && Number(data.composed_chars) > 0) {
        const { composed_chars: characters } = data;
        void recorder.event("composition", { trial_index: trial.trial_index, attempt, characters });
      }
      if (!isLast) return;
      const payload = trialPayload(trial, attempt, steps, uuid(), new Date());
      const isSimulated = steps.some((recorded) => recorded.simulated === true);
      if (!isSimulated) await recorder.trial(payload);
      progress.answer(trial, attempt);
      conduct.onShare(progress.share());
      await onAnswer(payload, isSimulated);
    },
  }));
  const before = { type: FixationPlugin, interval_ms: trial.interval_ms ?? 0, fixation_ms: trial.fixation_ms ?? 0 };
  return [before, ...nodes];
}

function stepNode(
  step: ShownStep,
  trial: PlannedTrial,
  { language, items_language = language }: Pick<Plan, "language" | "items_language">,
  { messages, isInputAssisted, plugins }: Conduct,
): Node {
  if (step.step === "own") {
    const { step: _, type, answer_field, ...given } = step;
    const own = { plugin: plugins[type], own_type: type, answer_field, given: { ...given, language, items_language } };
    return { type: OwnPlugin, ...own, language, items_language, messages };
  }
  const texts = { text: step.text ?? null, lines: step.lines ?? [], media: step.media ?? [], style: step.style ?? null, language, items_language, messages };
  if (step.step === "prime") {
    const { mask, mask_ms, frames, prime_ms, backward_mask, backward_ms } = step;
    return { type: PrimePlugin, ...texts, mask, mask_ms, frames, prime_ms, backward_mask, backward_ms };
  }
  const captioned = { ...texts, caption: step.caption ?? null };
  if (step.step === "read") {
    const { as, parts, part_ms, foils, sides, keys, wrong, blank_ms = 0, minimum_ms = 0 } = step;
    const lists = { parts: parts ?? [], part_ms: part_ms ?? [], foils: foils ?? [], sides: sides ?? [], keys: keys ?? [] };
    return { type: ReadPlugin, ...captioned, ...lists, as, wrong, blank_ms, minimum_ms };
  }
  const asked = {
    ...captioned,
    ask: step.ask ?? null,
    minimum_ms: step.minimum_ms ?? 0,
    time_limit_ms: step.time_limit_ms ?? null,
    exemplars: trial.exemplars ?? [],
  };
  switch (step.step) {
    case "choose":
      return { type: ChoosePlugin, ...asked, labels: step.labels, options: step.options ?? [], pictures: step.pictures ?? [], keys: step.keys, several: step.several ?? false };
    case "rate": {
      const { from, to, low, high, labels, keys, decimals } = step;
      return { type: RatePlugin, ...asked, from, to, low: low ?? null, high: high ?? null, labels: labels ?? [], keys, decimals };
    }
    case "recover":
      return { type: RecoverPlugin, ...asked, multiline: step.multiline ?? false, assistive_input: isInputAssisted };
    case "answer":
      return { type: AnswerPlugin, ...asked, multiline: step.multiline ?? false, hint: step.hint ?? null, assistive_input: isInputAssisted };
    default:
      throw new Error(`the plan has a step "${(step as { step: string }).step}", which this page does not know`);
  }
}
