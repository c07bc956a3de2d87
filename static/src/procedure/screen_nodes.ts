/** The jsPsych nodes of screens that hold no trials: device, questions, full screen, size of the screen, breaks. */

import { rememberedSize } from "../calibration";
import type { Messages } from "../messages";
import { type DeviceData, DevicePlugin } from "../plugins/device";
import { type FullScreenData, FullScreenPlugin } from "../plugins/full_screen";
import { type PagesData, PagesPlugin } from "../plugins/pages";
import { type QuestionsData, QuestionsPlugin } from "../plugins/questions";
import { type ScreenSizeData, ScreenSizePlugin } from "../plugins/screen_size";
import type { BreakScreen, DeviceScreen, Plan, QuestionsScreen, Screen, ScreenSizeScreen } from "./plan";
import { isAsked, trialsOf } from "./plan";
import type { Progress } from "./progress";
import type { Answered, Conduct, Node } from "./session";

/** Whether a screen is to be shown: it was not gone through, or what it set up is lost and still needed. */
export function isDue(screen: Screen, place: number, plan: Plan, progress: Progress): boolean {
  if (screen.kind === "questions" && screen.is_answered) return false;
  if (!progress.isOver(place)) return true;
  if (screen.kind !== "full_screen" && screen.kind !== "screen_size") return false;
  const remains = plan.screens.some(
    (later, index) => index > place && trialsOf(later).length > 0 && !progress.isOver(index),
  );
  if (!remains || progress.remark(screen.kind) === "none") return false;
  return screen.kind === "full_screen" ? !document.fullscreenElement : rememberedSize() === null;
}

/** End the session early, with the reason in words. */
function screenOut(words: string, conduct: Conduct): void {
  conduct.onEnd("screened_out", words);
  conduct.jsPsych.abortExperiment();
}

export function deviceNode(screen: DeviceScreen, place: number, language: string, conduct: Conduct): Node {
  const { messages, progress, recorder } = conduct;
  const { device, browsers, width, height, refresh_hz } = screen;
  return {
    type: DevicePlugin,
    rules: { device, browsers, width, height, refresh_hz },
    language,
    messages,
    on_missed: ({ measured, missed }: DeviceData) => void recorder.event("device_missed", { measured, missed }),
    on_finish: async ({ passed, measured, missed }: DeviceData) => {
      await recorder.event("device", { passed, measured, missed });
      if (passed) progress.leave(place);
      else screenOut(messages.device_ended, conduct);
    },
  };
}

export function questionsNode(
  screen: QuestionsScreen,
  place: number,
  language: string,
  conduct: Conduct,
  onJudged: (then: Answered["then"]) => void = () => {},
): Node {
  const { messages, progress, recorder } = conduct;
  return {
    type: QuestionsPlugin,
    questions: screen.questions,
    given: () => progress.givenBefore(screen),
    heading: questionsHeading(screen, messages),
    language,
    messages,
    on_finish: async ({ answers, duration }: QuestionsData) => {
      progress.note(screen, answers);
      const { eligible, then } = await recorder.answers(screen.name, answers);
      await recorder.event("questions", { screen: screen.name, duration });
      onJudged(then);
      if (then === "end") {
        conduct.onEnd("comprehension_failed", messages.comprehension_failed);
        conduct.jsPsych.abortExperiment();
      } else if (then === "assigned") {
        progress.leave(place);
        conduct.onEnd("assigned", null);
        conduct.jsPsych.abortExperiment();
      } else if (!eligible) screenOut(then === "full" ? messages.group_full : messages.not_eligible, conduct);
      else if (then !== "again") progress.leave(place);
    },
  };
}

/** Whether a screen of questions asks anything after the answers so far; one that does not is recorded as asking nothing. */
export function asksAnything(screen: QuestionsScreen, place: number, { progress, recorder }: Conduct): boolean {
  if (screen.questions.some((question) => isAsked(question, progress.givenBefore(screen)))) return true;
  progress.note(screen, {});
  void recorder.answers(screen.name, {}).then(() => progress.leave(place));
  return false;
}

function questionsHeading(screen: QuestionsScreen, messages: Messages): string {
  if (screen.screening) return messages.eligibility_title;
  return screen.comprehension ? messages.comprehension_title : messages.questions_title;
}

export function fullScreenNode(place: number, language: string, conduct: Conduct): Node {
  const { messages, progress, recorder } = conduct;
  return {
    type: FullScreenPlugin,
    language,
    messages,
    on_finish: async ({ granted, reason }: FullScreenData) => {
      await recorder.event("full_screen", { granted, reason });
      progress.setRemark("full_screen", granted ? "granted" : "none");
      progress.leave(place);
    },
  };
}

export function screenSizeNode(screen: ScreenSizeScreen, place: number, language: string, conduct: Conduct): Node {
  const { messages, progress, recorder } = conduct;
  return {
    type: ScreenSizePlugin,
    character_mm: screen.character_mm,
    language,
    messages,
    on_finish: async ({ px_per_mm, pixel_ratio, font_px, remembered }: ScreenSizeData) => {
      const { character_mm } = screen;
      await recorder.event("screen_size", { px_per_mm, pixel_ratio, character_mm, font_px, remembered });
      progress.setRemark("screen_size", px_per_mm === null ? "none" : "found");
      progress.leave(place);
    },
  };
}

export function breakNode(screen: BreakScreen, place: number, language: string, conduct: Conduct): Node {
  const { messages, progress, recorder } = conduct;
  return {
    type: PagesPlugin,
    pages: [breakPage(screen, messages)],
    language,
    messages,
    on_finish: async ({ duration }: PagesData) => {
      await recorder.event("break", { block: null, after: progress.latest, duration });
      progress.leave(place);
    },
  };
}

function breakPage({ html, minimum_ms = 0 }: BreakScreen, messages: Messages) {
  return { heading: messages.break_title, html, text: html ? [] : [messages.pause_text], minimum_ms };
}
