/** What is set right before a trial: full screen that the reader left, and a window in which the lines fit that are read part by part. */

import { type FullScreenData, FullScreenPlugin } from "../plugins/full_screen";
import { roomFor } from "../plugins/self_paced";
import { type WindowSizeData, WindowSizePlugin } from "../plugins/window_size";
import { type Plan, trialsOf } from "./plan";
import type { Conduct, Node } from "./session";

export function readyNodes(plan: Plan, conduct: Conduct): Node[] {
  return [...fullScreenAgain(plan, conduct), ...widerWindow(plan, conduct)];
}

function fullScreenAgain({ screens, language }: Plan, conduct: Conduct): Node[] {
  const { messages, progress, recorder } = conduct;
  if (!screens.some((screen) => screen.kind === "full_screen")) return [];
  const node: Node = {
    type: FullScreenPlugin,
    language,
    messages,
    on_finish: async ({ granted, reason }: FullScreenData) => {
      await recorder.event("full_screen", { granted, reason, before: progress.latest });
      if (!granted) progress.setRemark("full_screen", "none");
    },
  };
  const wasLeft = (): boolean => progress.remark("full_screen") === "granted" && !document.fullscreenElement;
  return [{ timeline: [node], conditional_function: wasLeft }];
}

function widerWindow(plan: Plan, conduct: Conduct): Node[] {
  const { messages, progress, recorder, jsPsych } = conduct;
  const lines = pacedLines(plan);
  if (lines.length === 0) return [];
  /** The width at which it was last found out whether the lines fit. */
  let checked = NaN;
  const node: Node = {
    type: WindowSizePlugin,
    lines,
    language: plan.language,
    items_language: plan.items_language ?? plan.language,
    messages,
    on_finish: async (data: WindowSizeData) => {
      const { needed, width, fits } = data;
      if (!fits) progress.smallerTextFrom = width;
      checked = width;
      await recorder.event("window_small", { needed, width, fits });
    },
  };
  const isTooNarrow = (): boolean => {
    if (innerWidth === checked || innerWidth >= progress.smallerTextFrom) return false;
    checked = innerWidth;
    return !roomFor(lines, plan.items_language ?? plan.language, jsPsych.getDisplayElement()).fits;
  };
  return [{ timeline: [node], conditional_function: isTooNarrow }];
}

/** Every line that is read part by part. */
function pacedLines(plan: Plan): string[] {
  const steps = plan.screens.flatMap(trialsOf).flatMap((trial) => trial.steps);
  return [...new Set(steps.flatMap((step) => (step.step === "read" && step.as !== "whole" ? (step.lines ?? []) : [])))];
}
