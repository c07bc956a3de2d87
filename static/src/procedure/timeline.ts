/** Unfolds a session plan into a jsPsych timeline. */

import { fill, type Messages } from "../messages";
import type { Action, PageContent } from "../page";
import { FixationPlugin } from "../plugins/fixation";
import { type PagesData, PagesPlugin } from "../plugins/pages";
import { feedbackNode, judgeHere, judgeThere } from "./feedback_nodes";
import { aboutTrial, type BlockScreen, type InstructionsScreen, isFurther, type Plan, type PracticeScreen, type QuestionsScreen, type Screen } from "./plan";
import { isCorrect, isEarlyEnough, isThrough, practiceOutcome, type PracticeOutcome, rightAnswer } from "./practice";
import type { Progress } from "./progress";
import { readyNodes } from "./ready_nodes";
import { asksAnything, breakNode, deviceNode, fullScreenNode, isDue, questionsNode, screenSizeNode } from "./screen_nodes";
import type { Conduct, Node, Timeline } from "./session";
import { trialNodes } from "./trial_nodes";

export function unfold(plan: Plan, conduct: Conduct): Timeline[] {
  return plan.screens.map((screen, place) => ({
    ...screenNode(screen, place, plan, conduct),
    conditional_function: () =>
      isDue(screen, place, plan, conduct.progress) && (screen.kind !== "questions" || asksAnything(screen, place, conduct)),
  }));
}

function screenNode(screen: Screen, place: number, plan: Plan, conduct: Conduct): Timeline {
  const { messages, progress, recorder } = conduct;
  const { language } = plan;
  switch (screen.kind) {
    case "consent":
      return consent(screen.html, screen.version, place, language, conduct);
    case "instructions":
      return {
        timeline: [
          pages(instructionPages(screen, messages), language, conduct, {
            on_finish: async (data: PagesData) => {
              await recorder.event("instructions", { view_history: data.view_history, duration: data.duration });
              progress.leave(place);
            },
          }),
        ],
      };
    case "device":
      return { timeline: [deviceNode(screen, place, language, conduct)] };
    case "questions":
      return screen.comprehension
        ? comprehension(screen, place, plan, conduct)
        : { timeline: [questionsNode(screen, place, language, conduct)] };
    case "full_screen":
      return { timeline: [fullScreenNode(place, language, conduct)] };
    case "screen_size":
      return { timeline: [screenSizeNode(screen, place, language, conduct)] };
    case "break":
      return { timeline: [breakNode(screen, place, language, conduct)] };
    case "practice":
      return practice(screen, place, plan, conduct);
    case "block":
      return block(screen, place, plan, conduct);
    case "debrief":
      return {
        timeline: [
          pages([{ heading: messages.debrief_title, html: screen.html }], language, conduct, {
            on_finish: async (data: PagesData) => {
              await recorder.event("debrief", { duration: data.duration });
              progress.leave(place);
            },
          }),
        ],
      };
    default:
      throw new Error(`the plan has a screen of kind "${(screen as { kind: string }).kind}", which this page does not know`);
  }
}

function pages(contents: PageContent[] | (() => PageContent[]), language: string, conduct: Conduct, rest: object): Node {
  return { type: PagesPlugin, pages: contents, language, messages: conduct.messages, ...rest };
}

function instructionPages(screen: InstructionsScreen, messages: Messages): PageContent[] {
  return screen.pages.map(({ html, minimum_ms = 0 }) => ({ heading: messages.instructions_title, html, minimum_ms }));
}

/** Questions about instructions: asked again, behind the instructions, until the server finds enough of them right. */
function comprehension(screen: QuestionsScreen, place: number, plan: Plan, conduct: Conduct): Timeline {
  const { messages, recorder } = conduct;
  const before = plan.screens.slice(0, place).reverse().find((one) => one.kind === "instructions");
  let round = 1;
  let isAskedAgain = false;
  const questions = questionsNode(screen, place, plan.language, conduct, (then) => (isAskedAgain = then === "again"));
  const notice: PageContent = { heading: messages.comprehension_again_title, text: [messages.comprehension_again] };
  const reread: Node = {
    timeline: [
      pages([notice, ...(before?.kind === "instructions" ? instructionPages(before, messages) : [])], plan.language, conduct, {
        on_finish: async (data: PagesData) => {
          round += 1;
          await recorder.event("instructions", { view_history: data.view_history, duration: data.duration, round });
        },
      }),
    ],
    conditional_function: () => isAskedAgain,
  };
  return { timeline: [questions, reread], loop_function: () => isAskedAgain };
}

function consent(html: string, version: string, place: number, language: string, conduct: Conduct): Timeline {
  const { messages, progress, recorder, jsPsych } = conduct;
  const actions: Action[] = [
    { name: "agree", words: messages.agree },
    { name: "decline", words: messages.decline, quiet: true },
  ];
  return {
    timeline: [
      pages([{ heading: messages.consent_title, html, below: conduct.receipt() }], language, conduct, {
        actions,
        on_finish: async (data: PagesData) => {
          const agreed = data.action === "agree";
          if (agreed) {
            await recorder.event("consent", { agreed, version, duration: data.duration });
            progress.setRemark("agreed", new Date().toISOString());
            progress.leave(place);
            conduct.onAgreed();
          } else {
            conduct.onEnd("declined", null); // all that is sent of it is that it was declined
            jsPsych.abortExperiment();
          }
        },
      }),
    ],
  };
}

function practice(screen: PracticeScreen, place: number, plan: Plan, conduct: Conduct): Timeline {
  const { language } = plan;
  const { messages, progress, recorder, jsPsych } = conduct;
  const { feedback } = screen;
  let over = false;
  const outcome = (): PracticeOutcome => {
    const { pass, correct } = progress.practice(place);
    return practiceOutcome(screen, pass, correct);
  };
  const ready = readyNodes(plan, conduct);
  const trials = screen.trials.map((trial, index) => {
    const about = aboutTrial(screen.trials, index);
    const isLast = !isFurther(screen.trials[index + 1]);
    const steps = trialNodes(trial, plan, conduct, (payload) => {
      if (isFurther(trial)) {
        progress.judgePractice(place, trial, true);
        return;
      }
      progress.judgePractice(place, trial, isCorrect(trial, payload.response_raw, language) ?? isThrough(trial, payload.regions) ?? true);
      const verdict = feedback && judgeHere(feedback, trial, payload, language);
      progress.judge({ trial_index: about, attempt: payload.attempt, verdict, answer: rightAnswer(trial) });
    });
    return {
      timeline: [...ready, ...steps, ...(feedback && isLast ? [feedbackNode(feedback, about, language, conduct)] : [])],
      conditional_function: () => {
        const { pass, correct } = progress.practice(place);
        if (isFurther(trial)) return about in correct && !(trial.trial_index in correct);
        return !(trial.trial_index in correct) && !isEarlyEnough(screen, pass, correct);
      },
    };
  });
  const next = plan.screens.slice(place + 1).find((one) => one.kind === "block");
  const isTold = next?.kind === "block" && next.feedback?.accuracy === true;
  const summary = pages(() => [outcomePage(outcome(), isTold, messages)], language, conduct, {
    on_finish: async () => {
      const { pass } = progress.practice(place);
      const { right, total, needed, then } = outcome();
      await recorder.event("practice", { block: screen.block, pass, right, total, needed, then });
      if (then === "again") {
        progress.practiseAgain(place);
      } else if (then === "go on") {
        over = true;
        progress.leave(place);
      } else {
        over = true;
        conduct.onEnd("practice_failed", fill(messages.practice_failed, { needed: needed ?? 0, total }));
        jsPsych.abortExperiment();
      }
    },
  });
  return { timeline: [...trials, summary], loop_function: () => !over };
}

/** How practice went; where it is over, also whether one goes on being told whether answers are correct. */
function outcomePage(outcome: PracticeOutcome, isTold: boolean, messages: Messages): PageContent {
  const { right, total, needed, then } = outcome;
  const score = needed === null ? null : fill(messages.practice_score, { right, total });
  const next =
    then === "end"
      ? null
      : then === "again"
        ? fill(messages.practice_again, { needed: needed ?? 0, total })
        : needed === null
          ? messages.practice_over
          : messages.practice_passed;
  const untold = then === "go on" && !isTold ? messages.practice_untold : null;
  return { heading: messages.practice_done_title, text: [score, next, untold] };
}

function block(screen: BlockScreen, place: number, plan: Plan, conduct: Conduct): Timeline {
  const { messages, progress, recorder } = conduct;
  const { feedback = null } = screen;
  let latest: number | null = null;
  const blocks = plan.screens.filter((candidate) => candidate.kind === "block");
  const total = blocks.reduce((sum, candidate) => sum + candidate.trials.filter((trial) => !isFurther(trial)).length, 0);
  let shownBefore = 0;
  const minimum_ms = screen.break_minimum_ms ?? 0;
  const ready = readyNodes(plan, conduct);
  const nodes = screen.trials.flatMap((trial, index): Node[] => {
    const isLast = !isFurther(screen.trials[index + 1]);
    if (isLast) shownBefore += 1;
    const steps = trialNodes(trial, plan, conduct, async (payload, isSimulated) => {
      latest = trial.trial_index;
      if (isFurther(trial)) return;
      const isJudged = feedback !== null && !isSimulated;
      const verdict = isJudged ? await judgeThere(feedback, trial, payload, plan.language, conduct) : null;
      progress.judge({ trial_index: trial.trial_index, attempt: payload.attempt, verdict, answer: null });
    });
    const shown: Node = {
      timeline: [...ready, ...steps, ...(feedback && isLast ? [feedbackNode(feedback, aboutTrial(screen.trials, index), plan.language, conduct)] : [])],
      conditional_function: () => !progress.isAnswered(trial),
    };
    const isBreak = screen.break_every && isLast && shownBefore % screen.break_every === 0 && index + 1 < screen.trials.length;
    if (!isBreak) return [shown];
    const done = (): number => Math.round(progress.share(blocks) * total);
    const rest = pages(
      () => [{ heading: messages.break_title, text: [fill(messages.break_text, { done: done(), total })], minimum_ms }],
      plan.language,
      conduct,
      {
        on_finish: (data: PagesData) =>
          recorder.event("break", { block: screen.block, after: trial.trial_index, duration: data.duration }),
      },
    );
    // No break right after a reload: the page of welcome was one.
    return [shown, { timeline: [rest], conditional_function: () => latest === trial.trial_index }];
  });
  return { timeline: [...nodes, leaveNode(place, progress)] };
}

/** Marks a block as gone through; shows nothing. */
function leaveNode(place: number, progress: Progress): Node {
  return {
    timeline: [{ type: FixationPlugin }],
    conditional_function: () => {
      progress.leave(place);
      return false;
    },
  };
}
