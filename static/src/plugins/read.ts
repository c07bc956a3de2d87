/** `wrods-read`: a text read all at once or part by part, at one's own pace or for counted frames. */

import type { JsPsych, JsPsychPlugin, TrialType } from "jspsych";
import { version } from "../../package.json";
import { element } from "../dom";
import { readFields, readParameters, type ReadRecord } from "../generated/trials";
import { isPlainStroke, keyName, struckKey } from "../keys";
import { library, type MediaFile, timedPart, withMedia } from "../media";
import type { Messages } from "../messages";
import { Exposure } from "../timing/exposure";
import { frames } from "../timing/frames";
import { framesFor, type Shown, showStages, type Stage } from "../timing/stages";
import { fitLines, type Style, studyLines, styled } from "./lines";
import { Maze } from "./maze";
import { MinimumTime, NOT_EARLY } from "./minimum";
import { pageParameters } from "./parameters";
import { fitScreen } from "./room";
import { MODES, type Region, SelfPacedText, wordsOf } from "./self_paced";
import { plausibleTimes, type Simulated } from "./simulation";
import { captioned, keyButton, trialScreen } from "./stimulus";

const info = <const>{
  name: "wrods-read",
  version,
  parameters: { ...readParameters, ...pageParameters },
  data: readFields,
};

type Info = typeof info;

export type ReadData = ReadRecord & { regions?: Region[] } & Simulated;

export class ReadPlugin implements JsPsychPlugin<Info> {
  static readonly info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  async trial(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<ReadData> {
    if (trial.part_ms && trial.part_ms.length > 0) return this.present(display, trial, trial.part_ms, onLoad);
    if (trial.as === "maze") return this.lead(display, trial, onLoad);
    const mode = MODES.find((one) => one === trial.as) ?? null;
    if (mode === null && trial.as !== "whole") {
      throw new Error(`wrods-read shows texts as whole, ${MODES.join(", ")}; the plan asks for "${trial.as}"`);
    }
    const messages = trial.messages as Messages;
    const language = trial.language ?? "en";
    const itemsLanguage = trial.items_language ?? language;
    const lines = linesOf(trial);
    const paced = mode && new SelfPacedText(lines, partsOf(trial), mode, itemsLanguage);
    const text = styled(paced?.element ?? studyLines(trial.text, lines, itemsLanguage), trial.style as Style | null);
    const isByWord = paced !== null && partsOf(trial).length === wordsOf(lines).length;
    const button = keyButton(["space"], messages, isByWord ? messages.next_word : messages.go_on);
    const shown = withMedia((trial.media ?? []) as MediaFile[], trial.text ? text : null) ?? text;
    const item = captioned(trial.caption ?? null, shown, language);
    const screen = trialScreen("read", messages, { item, below: [element("div", { class: "actions" }, button)] });
    const minimum = trial.minimum_ms ?? 0;

    const exposure = await Exposure.begin(display, screen, timedPart(shown), () => {
      paced?.arrange(() => fitLines(screen));
    });
    screen.focus({ preventScroll: true });
    onLoad?.();
    const isTooEarly = (now: number): boolean =>
      paced ? paced.isLast && now - (paced.onset ?? now) < minimum : now - exposure.onset < minimum;
    const early = new MinimumTime(exposure, minimum, [button], isTooEarly);
    const response = await new Promise<Event | null>((resolve) => {
      const listening = new AbortController();
      const answer = (event: Event): void => {
        if (!exposure.accepts(event)) return;
        if (isTooEarly(event.timeStamp)) return early.note(event, "space");
        if (paced && !paced.press(event.timeStamp, minimum)) return;
        listening.abort();
        resolve(event);
      };
      const options = { capture: true, signal: listening.signal };
      document.addEventListener(
        "keydown",
        (event) => {
          if (keyName(event.key) !== "space" || !isPlainStroke(event)) return;
          event.preventDefault(); // the space bar must not scroll the page
          answer(event);
        },
        options,
      );
      button.addEventListener("click", answer, { signal: listening.signal });
      exposure.atLimit(null, () => {
        listening.abort();
        resolve(null);
      });
    });
    const presses = early.stop();
    const times = { ...(await exposure.end(response)), ...presses, ...NOT_BY_ITSELF };
    if (!paced || response === null) return { ...times, reading_time: times.rt };
    // Reading begins with the first part: dashes are nothing to read.
    return { ...times, reading_time: response.timeStamp - (paced.onset ?? exposure.onset), regions: paced.regions };
  }

  /** Lead through a maze, in which the reader chooses each word. */
  private async lead(display: HTMLElement, trial: TrialType<Info>, onLoad?: () => void): Promise<ReadData> {
    const language = trial.language ?? "en";
    const messages = trial.messages as Messages;
    const [foils, sides, keys] = [trial.foils ?? [], trial.sides ?? [], trial.keys ?? []];
    const maze = new Maze({ words: partsOf(trial), foils, sides }, keys, trial.wrong ?? "end", messages, trial.items_language ?? language);
    const screen = trialScreen("read", messages, { item: captioned(trial.caption ?? null, maze.element, language), below: [] });
    const exposure = await Exposure.begin(display, screen, maze.element, () => fitLines(maze.element));
    maze.begin(exposure.onset);
    screen.focus({ preventScroll: true });
    onLoad?.();
    let isThrough = false;
    const last = await new Promise<Event | null>((resolve) => {
      const listening = new AbortController();
      const choose = (event: Event, side: number): void => {
        if (!exposure.accepts(event)) return;
        const step = maze.choose(side, event.timeStamp);
        if (step !== "ended" && step !== "finished") return;
        isThrough = step === "finished";
        listening.abort();
        resolve(event);
      };
      const press = (event: KeyboardEvent): void => {
        const side = struckKey(event, keys);
        if (side < 0) return;
        event.preventDefault();
        choose(event, side);
      };
      document.addEventListener("keydown", press, { capture: true, signal: listening.signal });
      for (const [side, button] of maze.buttons.entries()) {
        button.addEventListener("click", (event) => choose(event, side), { signal: listening.signal });
      }
      exposure.atLimit(null, () => {
        listening.abort();
        resolve(null);
      });
    });
    const times = await exposure.end(last);
    if (last !== null && !isThrough) await frames.wait(NOTICE_MS); // why the sentence ended
    const reading_time = isThrough ? times.rt : null;
    return { ...times, ...NOT_EARLY, ...NOT_BY_ITSELF, reading_time, regions: maze.regions };
  }

  /** Show a text that ends by itself: whole, or its parts one after another (RSVP). */
  private async present(display: HTMLElement, trial: TrialType<Info>, times: number[], onLoad?: () => void): Promise<ReadData> {
    const language = trial.language ?? "en";
    const itemsLanguage = trial.items_language ?? language;
    const lines = linesOf(trial);
    const serial = trial.as === "rsvp" ? new SelfPacedText(lines, partsOf(trial), "centred", itemsLanguage) : null;
    const text = serial?.element ?? studyLines(trial.text, lines, itemsLanguage);
    const item = captioned(trial.caption ?? null, withMedia((trial.media ?? []) as MediaFile[], trial.text ? text : null) ?? text, language);
    const screen = trialScreen("read", trial.messages as Messages, { item, below: [] });
    if (serial) screen.setAttribute("aria-hidden", "true"); // too short to be read out
    const blank = serial && trial.blank_ms ? [{ ms: trial.blank_ms, draw: () => serial.present(null) }] : [];
    const stages = times.flatMap((ms, part): Stage[] => [...(part > 0 ? blank : []), { ms, draw: () => serial?.present(part) }]);
    const { shown, record } = await showStages(stages, () => {
      display.replaceChildren(screen);
      if (serial) serial.arrange(() => fitScreen(screen));
      else fitScreen(screen);
      library.start(screen);
      onLoad?.();
    });
    const total = (numbers: (number | null)[]): number | null =>
      numbers.reduce((sum, number) => (sum === null || number === null ? null : sum + number), 0);
    return {
      ...record,
      ...NOT_EARLY,
      onset_ts: shown[0]?.onset_ts ?? 0,
      reading_time: null,
      shown_frames: total(shown.map(({ frames }) => frames)),
      shown_ms: total(shown.map(({ shown_ms }) => shown_ms)),
      regions: serial ? regionsOf(shown.filter((_, index) => index % (1 + blank.length) === 0)) : [],
    };
  }

  simulate(trial: TrialType<Info>, mode: "data-only" | "visual", _options: object, onLoad?: () => void): Promise<ReadData> {
    const parts = partsOf(trial);
    const isPaced = trial.as !== "whole";
    const typical = 250 * wordsOf(linesOf(trial)).length;
    const times = { ...plausibleTimes(typical, { minimum_ms: trial.minimum_ms }), ...NOT_EARLY, ...NOT_BY_ITSELF };
    if (mode === "visual") {
      let place = 0;
      const keys = trial.keys ?? [];
      const key = (): string => (keys.length > 0 ? keys[trial.sides?.[place++] === "right" ? 1 : 0]! : " ");
      const press = (): void => this.jsPsych.pluginAPI.pressKey(key());
      const pressing = setInterval(press, isPaced ? 300 : (times.rt ?? 0));
      return this.trial(this.jsPsych.getDisplayElement(), trial, onLoad)
        .then((data): ReadData => ({ ...data, simulated: true }))
        .finally(() => clearInterval(pressing));
    }
    onLoad?.();
    if (trial.part_ms && trial.part_ms.length > 0) {
      const period = times.frame_period ?? 1000 / 60;
      let onset_ts = times.onset_ts;
      const shown = trial.part_ms.map((ms): Shown => {
        const frames = framesFor(ms, period);
        const own = { onset_ts, frames, shown_ms: frames * period };
        onset_ts += own.shown_ms + (trial.blank_ms ?? 0);
        return own;
      });
      const shown_ms = onset_ts - times.onset_ts - (trial.blank_ms ?? 0);
      const nothing = { response_ts: null, handler_ts: null, rt: null, reading_time: null };
      const regions = trial.as === "rsvp" ? regionsOf(shown) : [];
      return Promise.resolve({ ...times, ...nothing, shown_frames: Math.round(shown_ms / period), shown_ms, regions, simulated: true });
    }
    if (!isPaced) return Promise.resolve({ ...times, reading_time: times.rt, simulated: true });
    const each = (times.rt ?? 0) / parts.length;
    const chosen = trial.as === "maze" ? { is_correct: true, right_rt: each } : {};
    const regions = parts.map((_, region) => ({ region, line: null, onset_ts: times.onset_ts + region * each, rt: each, ...chosen }));
    return Promise.resolve({ ...times, reading_time: times.rt, regions, simulated: true });
  }
}

/** How long it is told that a foil was chosen, ms. */
const NOTICE_MS = 1000;
const NOT_BY_ITSELF = { shown_frames: null, shown_ms: null };

function regionsOf(shown: readonly Shown[]): Region[] {
  return shown.map((own, region) => ({ region, line: null, ...own }));
}

/** The parts of a text that is read part by part; the words of one whose plan names none. */
function partsOf(trial: { text: string; lines?: string[] | null | undefined; parts?: string[] | null | undefined }): string[] {
  return trial.parts && trial.parts.length > 0 ? trial.parts : wordsOf(linesOf(trial));
}

function linesOf(trial: { text: string; lines?: string[] | null | undefined }): string[] {
  return trial.lines && trial.lines.length > 0 ? trial.lines : trial.text.split("\n");
}
