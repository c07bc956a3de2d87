/** Runs a plan through jsPsych in the page's frame and says how it ended. */

import { initJsPsych } from "jspsych";
import { forgetLetterSize, rememberedSize, sizeLetters } from "./calibration";
import { loadLetters } from "./client";
import { followSystem, onSystemDisplay, planPolarity } from "./display";
import type { StopChoice, StopOffer } from "./leaving/stop";
import { library } from "./media";
import type { Messages } from "./messages";
import { type Frame, showPage } from "./page";
import { loadPlugins } from "./plugins/own";
import { fitScreen } from "./plugins/room";
import { mediaFiles, type Plan, stimulusTexts, trialsOf } from "./procedure/plan";
import type { Progress } from "./procedure/progress";
import type { Ending, Recorder } from "./procedure/session";
import { unfold } from "./procedure/timeline";
import { interruption } from "./timing/interruption";

export interface Outcome {
  ending: Ending;
  /** What to tell a reader whose session ended early. */
  words: string | null;
}

export async function conductPlan(
  plan: Plan,
  frame: Frame,
  messages: Messages,
  progress: Progress,
  recorder: Recorder,
  offer: Pick<StopOffer, "later" | "payment" | "receipt">,
  pluginsAt: string,
): Promise<Outcome> {
  let outcome: Outcome = { ending: "completed", words: null };
  interruption.forget();
  frame.stage.replaceChildren();
  const plugins = await loadPlugins(plan.plugins ?? {}, pluginsAt);
  await Promise.all([loadLetters(stimulusTexts(plan)), loadMedia(plan, frame, messages)]);
  const setLetters = letterSizer(plan, progress);
  setLetters();
  planPolarity(plan.display?.polarity ?? "dark_on_light");
  const noteInteraction = (kind: string): Promise<void> =>
    recorder.event(kind, { trial_index: progress.latest, ts: performance.now() });
  const leaving = new AbortController();
  document.addEventListener(
    "visibilitychange",
    () => void noteInteraction(document.visibilityState === "hidden" ? "hidden" : "visible"),
    { signal: leaving.signal },
  );
  const fitAgain = (): void => {
    setLetters(); // the zoom of the page may have changed
    fitScreen(frame.stage);
  };
  window.addEventListener("resize", fitAgain, { signal: leaving.signal });
  onSystemDisplay((display) => void recorder.event("system_display", { ...display, trial_index: progress.latest }), leaving.signal);
  const hasTrials = plan.screens.some((screen) => trialsOf(screen).length > 0);
  frame.progress(hasTrials ? progress.share() : null);
  let leave: (choice: StopChoice) => void = () => {};
  const left = new Promise<StopChoice>((resolve) => (leave = resolve));
  const noteStop = (then: StopChoice | "continue", wasCut: boolean): Promise<void> => {
    const cut = wasCut && progress.latest !== null ? { trial_index: progress.latest, attempt: progress.nextAttempt(progress.latest) - 1 } : {};
    return recorder.event("stop", { then, ...cut });
  };
  const offerStop = (): void => {
    const onContinue = (wasCut: boolean): void => void noteStop("continue", wasCut);
    void frame.stop.offer({ ...offer, onContinue }).then(leave);
  };
  const consent = plan.screens.findIndex((screen) => screen.kind === "consent");
  if (consent < 0 || progress.isOver(consent)) offerStop();
  try {
    for (let isCut = true; isCut; ) {
      isCut = false;
      const jsPsych = initJsPsych({
        display_element: frame.stage,
        // jsPsych makes the stage a stop of the Tab key; it is none, only a place to put the focus.
        on_trial_start: () => (frame.stage.tabIndex = -1),
        on_interaction_data_update: (record: { event: string }) => void noteInteraction(record.event),
      });
      const timeline = unfold(plan, {
        jsPsych,
        messages,
        progress,
        recorder,
        plugins,
        isInputAssisted: plan.assistive_input ?? false,
        onShare: (share) => frame.progress(share),
        onAgreed: offerStop,
        onCut: () => (isCut = true),
        onEnd: (ending, words) => (outcome = { ending, words }),
        receipt: offer.receipt,
      });
      // a trial that was cut off comes again as it does after a reload, once the participant has decided to go on
      const ran = jsPsych.run({ timeline }).then(() => (isCut ? interruption.over() : undefined));
      const choice = (await Promise.race([ran, left])) ?? null;
      if (choice === null) continue;
      jsPsych.pauseExperiment(); // nothing comes after the screen that was left
      jsPsych.data.removeInteractionListeners();
      const hasAll = hasTrials && progress.share() === 1;
      const keeping = hasAll ? "completed" : "stopped";
      outcome = { ending: choice === "keep" ? keeping : choice === "delete" ? "deleted" : "later", words: null };
      if (outcome.ending === "stopped" || outcome.ending === "later") await noteStop(choice, isCut);
      isCut = false;
    }
  } finally {
    frame.stop.withdraw();
    leaving.abort();
    frame.progress(null);
    forgetLetterSize();
    followSystem();
    if (document.fullscreenElement) await document.exitFullscreen().catch(() => {});
    frame.stage.replaceChildren();
  }
  return outcome;
}

/** Sets the letters of stimuli to the size that the reader's calibration gave, once the plan's screen for it is over. */
function letterSizer(plan: Plan, progress: Progress): () => void {
  const place = plan.screens.findIndex((screen) => screen.kind === "screen_size");
  const screen = plan.screens[place];
  if (screen?.kind !== "screen_size") return forgetLetterSize;
  return () => {
    const px_per_mm = rememberedSize();
    if (px_per_mm !== null && progress.isOver(place) && progress.remark("screen_size") !== "none") {
      sizeLetters(screen.character_mm, px_per_mm);
    }
  };
}

/** Load what the items show, and offer another try where the network does not let it come. */
async function loadMedia(plan: Plan, frame: Frame, messages: Messages): Promise<void> {
  for (;;) {
    try {
      return await library.load(mediaFiles(plan));
    } catch {
      const again = [{ name: "again", words: messages.try_again }];
      await showPage(frame.stage, { heading: messages.start_failed, text: [] }, again, messages, plan.language);
    }
  }
}
