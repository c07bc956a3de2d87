/** Trial types. Made by `python -m experiment.trials.generate` from experiment/trials/; not edited by hand. */

import { ParameterType } from "jspsych";

/** The reader answers freely by typing: a word, a number, a sentence, a program, or the statement of a rule. */
export type AnswerStep = {
  step: "answer";
  /** Short label before the text. */
  caption: string | null;
  /** The text that the question is about; null if there is none. */
  text: string | null;
  /** The text in fixed lines; null without fixed lines. */
  lines: string[] | null;
  /** The question above the field. */
  ask: string | null;
  /** How the answer is read: text, number, option, code or completion. */
  read_as: string;
  /** The options, which are answered with their letters; null if there are none. */
  options: string[] | null;
  /** The decimal mark of the study's language. */
  decimal: string;
  /** Time from onset during which the field accepts no input, ms. */
  minimum_ms: number;
  /** Time from onset after which the trial ends with the text typed so far, ms. */
  time_limit_ms: number | null;
  /** Whether the answer can have several lines; otherwise Enter submits it. */
  multiline: boolean;
  /** The hint behind a button; null for none. */
  hint: string | null;
};

/** The reader chooses one of two or more labels: A/B classification, yes/no, or multiple choice. */
export type ChooseStep = {
  step: "choose";
  /** Short label before the text. */
  caption: string | null;
  /** The text to judge; null if there is none. */
  text: string | null;
  /** The text in fixed lines; null without fixed lines. */
  lines: string[] | null;
  /** The question below the text. */
  ask: string | null;
  /** The labels that the reader chooses from. */
  labels: string[];
  /** The canonical answer that each label stands for. */
  responses: string[];
  /** The long text of each label, if labels are letters. */
  options: string[] | null;
  /** The key of each label. */
  keys: string[];
  /** Time from onset during which keys and buttons have no effect, ms. */
  minimum_ms: number;
  /** Time from onset after which the trial ends without an answer, ms. */
  time_limit_ms: number | null;
};

/** A mask, then a prime for a counted number of frames, then the next step; no answer. */
export type PrimeStep = {
  step: "prime";
  /** Short label before the prime, for models. */
  caption: string | null;
  /** The prime. */
  text: string;
  /** The prime as lines. */
  lines: string[] | null;
  /** The forward mask as shown. */
  mask: string;
  /** Time of the forward mask, ms. */
  mask_ms: number;
  /** Frames of the prime; null if its time is given. */
  frames: number | null;
  /** Time of the prime, ms. */
  prime_ms: number;
  /** The backward mask as shown. */
  backward_mask: string | null;
  /** Time of the backward mask, ms. */
  backward_ms: number;
};

/** The reader gives a rating on a scale: a button for each point, or a slider. No rating is right or wrong. */
export type RateStep = {
  step: "rate";
  /** Short label before the text. */
  caption: string | null;
  /** The text to rate; null if there is none. */
  text: string | null;
  /** The text in fixed lines; null without fixed lines. */
  lines: string[] | null;
  /** The question below the text. */
  ask: string | null;
  /** Lowest point of the scale. */
  from: number;
  /** Highest point of the scale. */
  to: number;
  /** What the lowest point means. */
  low: string | null;
  /** What the highest point means. */
  high: string | null;
  /** The buttons: numbers or names of points; null for a slider. */
  labels: string[] | null;
  /** The rating that each button stands for; null for a slider. */
  responses: string[] | null;
  /** The key of each button; empty for a slider and above nine points. */
  keys: string[];
  /** Decimals to which a slider is set. */
  decimals: number;
  /** The decimal mark of the study's language. */
  decimal: string;
  /** Time from onset during which keys and buttons have no effect, ms. */
  minimum_ms: number;
  /** Time from onset after which the trial ends without an answer, ms. */
  time_limit_ms: number | null;
};

/** The reader reads a text and continues when done; no answer. */
export type ReadStep = {
  step: "read";
  /** Short label before the text. */
  caption: string | null;
  /** The text to read. */
  text: string;
  /** The text in fixed lines, which a part that is alone on the screen begins; null without fixed lines. */
  lines: string[] | null;
  /** How the text is shown: whole, moving_window, cumulative, centred, rsvp or maze. */
  as: string;
  /** What the parts are: word, chunk or sentence. */
  by: string;
  /** The words, chunks or sentences that are read one after another; null for a whole text. */
  parts: string[] | null;
  /** Time of each part, or of the whole text, that ends by itself, ms; null if the reader ends it. */
  part_ms: number[] | null;
  /** Time without text between two parts, ms. */
  blank_ms: number;
  /** What stands beside each word of a maze; null in other modes. */
  foils: string[] | null;
  /** The side of each word of a maze, left or right; null in other modes. */
  sides: string[] | null;
  /** The keys of a maze for the left and the right; null in other modes. */
  keys: string[] | null;
  /** What follows a foil that is chosen in a maze: end or retry. */
  wrong: string;
  /** Minimum time before the reader can continue, ms. */
  minimum_ms: number;
};

/** The reader types the intact form of the shown text. */
export type RecoverStep = {
  step: "recover";
  /** Short label before the text. */
  caption: string | null;
  /** The text whose intact form is to be typed. */
  text: string;
  /** The text in fixed lines; null without fixed lines. */
  lines: string[] | null;
  /** The request above the field. */
  ask: string | null;
  /** Time from onset during which the field accepts no input, ms. */
  minimum_ms: number;
  /** Time from onset after which the trial ends with the text typed so far, ms. */
  time_limit_ms: number | null;
  /** Whether the answer can have several lines; otherwise Enter submits it. */
  multiline: boolean;
};

export type Step = AnswerStep | ChooseStep | PrimeStep | RateStep | ReadStep | RecoverStep;

/** What every step records while its stimulus is up. */
export type ExposureRecord = {
  /** Clock inside the frame callback that drew the stimulus, ms. */
  onset_ts: number;
  /** The browser's own paint time, where it gives one, ms. */
  paint_ts: number | null;
  /** Time stamp of the key or pointer event, ms. */
  response_ts: number | null;
  /** Clock when the event reached the page, ms. */
  handler_ts: number | null;
  /** response_ts minus onset_ts of the answering screen, ms. */
  rt: number | null;
  /** Whether time ran out. */
  timed_out: boolean;
  /** Median interval between frames, ms. */
  frame_period: number | null;
  /** Frame intervals above 1.5 periods while the stimulus was up. */
  dropped_frames: number;
  /** Time for which the page was hidden during the trial, ms. */
  hidden_ms: number;
  /** Time for which the window had no focus during the trial, ms. */
  blurred_ms: number;
};

/** What a step of answer records. */
export type AnswerRecord = ExposureRecord & {
  /** The typed text, even if time ran out; null if time ran out before anything was typed. */
  response_raw: string | null;
  /** Onset to first key of a typed answer, ms. */
  first_key_ms: number | null;
  /** First key to submission of a typed answer, ms. */
  typing_ms: number | null;
  /** Pastes and drops that were blocked. */
  paste_count: number;
  /** Typed characters that no key press accounts for. */
  keyless_chars: number;
  /** Every text that was not typed, refused or taken back unless the study allows assistive input, as [ms from the onset, how it came]: `paste`, `drop`, an input type of the browser, or `script`. */
  insertions: [ms: number, key: string][];
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: number;
  /** Every key stroke before the minimum time as [ms from the onset, key]. */
  early_keys: [ms: number, key: string][];
  /** Onset to the request for a hint; null without a request, ms. */
  hint_ms: number | null;
  /** Every key stroke as [ms from the onset, key]. */
  key_log: [ms: number, key: string][];
};

/** What a step of choose records. */
export type ChooseRecord = ExposureRecord & {
  /** The label that was chosen, or all of several, such as A, C; null when time ran out. */
  response_raw: string | null;
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: number;
  /** Every press of a label's key or button before the minimum time as [ms from the onset, label]. */
  early_keys: [ms: number, key: string][];
};

/** What a step of prime records. */
export type PrimeRecord = ExposureRecord & {
  /** Frames for which the prime was on the screen. */
  prime_frames: number | null;
  /** Time for which the prime was on the screen, ms. */
  prime_ms: number | null;
};

/** What a step of rate records. */
export type RateRecord = ExposureRecord & {
  /** The point that was chosen, as its button or the slider has it; null when time ran out. */
  response_raw: string | null;
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: number;
  /** Every press of a key, a button or the slider before the minimum time as [ms from the onset, point]. */
  early_keys: [ms: number, key: string][];
};

/** What a step of read records. */
export type ReadRecord = ExposureRecord & {
  /** Onset of the text to the key that ended reading; null for a text that ended by itself, or in a maze with a foil, ms. */
  reading_time: number | null;
  /** Frames from the onset to the end of a text that ended by itself. */
  shown_frames: number | null;
  /** Time from the onset to the end of a text that ended by itself, ms. */
  shown_ms: number | null;
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: number;
  /** Every press before the minimum time as [ms from the onset, key]. */
  early_keys: [ms: number, key: string][];
};

/** What a step of recover records. */
export type RecoverRecord = ExposureRecord & {
  /** The typed text, even if time ran out; null if time ran out before anything was typed. */
  response_raw: string | null;
  /** Onset to first key of a typed answer, ms. */
  first_key_ms: number | null;
  /** First key to submission of a typed answer, ms. */
  typing_ms: number | null;
  /** Pastes and drops that were blocked. */
  paste_count: number;
  /** Typed characters that no key press accounts for. */
  keyless_chars: number;
  /** Every text that was not typed, refused or taken back unless the study allows assistive input, as [ms from the onset, how it came]: `paste`, `drop`, an input type of the browser, or `script`. */
  insertions: [ms: number, key: string][];
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: number;
  /** Every key stroke before the minimum time as [ms from the onset, key]. */
  early_keys: [ms: number, key: string][];
  /** Every key stroke as [ms from the onset, key]. */
  key_log: [ms: number, key: string][];
};

export type StepRecord = AnswerRecord | ChooseRecord | PrimeRecord | RateRecord | ReadRecord | RecoverRecord;

/** The recorded fields of a trial's row; null where its steps record no such thing. */
export type TrialRecord = ExposureRecord & {
  response_raw: string | null;
  first_key_ms: number | null;
  typing_ms: number | null;
  paste_count: number | null;
  keyless_chars: number | null;
  insertions: [ms: number, key: string][] | null;
  early_responses: number | null;
  early_keys: [ms: number, key: string][] | null;
  hint_ms: number | null;
  key_log: [ms: number, key: string][] | null;
  prime_frames: number | null;
  prime_ms: number | null;
  reading_time: number | null;
  shown_frames: number | null;
  shown_ms: number | null;
};

/** What every plugin records. */
export const exposureFields = <const>{
  /** Clock inside the frame callback that drew the stimulus, ms. */
  onset_ts: { type: ParameterType.FLOAT },
  /** The browser's own paint time, where it gives one, ms. */
  paint_ts: { type: ParameterType.FLOAT },
  /** Time stamp of the key or pointer event, ms. */
  response_ts: { type: ParameterType.FLOAT },
  /** Clock when the event reached the page, ms. */
  handler_ts: { type: ParameterType.FLOAT },
  /** response_ts minus onset_ts of the answering screen, ms. */
  rt: { type: ParameterType.FLOAT },
  /** Whether time ran out. */
  timed_out: { type: ParameterType.BOOL },
  /** Median interval between frames, ms. */
  frame_period: { type: ParameterType.FLOAT },
  /** Frame intervals above 1.5 periods while the stimulus was up. */
  dropped_frames: { type: ParameterType.INT },
  /** Time for which the page was hidden during the trial, ms. */
  hidden_ms: { type: ParameterType.FLOAT },
  /** Time for which the window had no focus during the trial, ms. */
  blurred_ms: { type: ParameterType.FLOAT },
};

/** What wrods-answer is given. */
export const answerParameters = <const>{
  /** Short label before the text. */
  caption: { type: ParameterType.STRING, default: null },
  /** The text that the question is about; null if there is none. */
  text: { type: ParameterType.STRING, default: null },
  /** The text in fixed lines; null without fixed lines. */
  lines: { type: ParameterType.STRING, array: true, default: [] },
  /** The question above the field. */
  ask: { type: ParameterType.STRING, default: null },
  /** Time from onset during which the field accepts no input, ms. */
  minimum_ms: { type: ParameterType.FLOAT, default: 0 },
  /** Time from onset after which the trial ends with the text typed so far, ms. */
  time_limit_ms: { type: ParameterType.FLOAT, default: null },
  /** Whether the answer can have several lines; otherwise Enter submits it. */
  multiline: { type: ParameterType.BOOL, default: false },
  /** The hint behind a button; null for none. */
  hint: { type: ParameterType.STRING, default: null },
};

/** What wrods-answer records. */
export const answerFields = <const>{
  ...exposureFields,
  /** The typed text, even if time ran out; null if time ran out before anything was typed. */
  response_raw: { type: ParameterType.STRING },
  /** Onset to first key of a typed answer, ms. */
  first_key_ms: { type: ParameterType.FLOAT },
  /** First key to submission of a typed answer, ms. */
  typing_ms: { type: ParameterType.FLOAT },
  /** Pastes and drops that were blocked. */
  paste_count: { type: ParameterType.INT },
  /** Typed characters that no key press accounts for. */
  keyless_chars: { type: ParameterType.INT },
  /** Every text that was not typed, refused or taken back unless the study allows assistive input, as [ms from the onset, how it came]: `paste`, `drop`, an input type of the browser, or `script`. */
  insertions: { type: ParameterType.COMPLEX, array: true },
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: { type: ParameterType.INT },
  /** Every key stroke before the minimum time as [ms from the onset, key]. */
  early_keys: { type: ParameterType.COMPLEX, array: true },
  /** Onset to the request for a hint; null without a request, ms. */
  hint_ms: { type: ParameterType.FLOAT },
  /** Every key stroke as [ms from the onset, key]. */
  key_log: { type: ParameterType.COMPLEX, array: true },
};

/** What wrods-choose is given. */
export const chooseParameters = <const>{
  /** Short label before the text. */
  caption: { type: ParameterType.STRING, default: null },
  /** The text to judge; null if there is none. */
  text: { type: ParameterType.STRING, default: null },
  /** The text in fixed lines; null without fixed lines. */
  lines: { type: ParameterType.STRING, array: true, default: [] },
  /** The question below the text. */
  ask: { type: ParameterType.STRING, default: null },
  /** The labels that the reader chooses from. */
  labels: { type: ParameterType.STRING, array: true, default: undefined },
  /** The long text of each label, if labels are letters. */
  options: { type: ParameterType.STRING, array: true, default: [] },
  /** The key of each label. */
  keys: { type: ParameterType.KEY, array: true, default: undefined },
  /** Time from onset during which keys and buttons have no effect, ms. */
  minimum_ms: { type: ParameterType.FLOAT, default: 0 },
  /** Time from onset after which the trial ends without an answer, ms. */
  time_limit_ms: { type: ParameterType.FLOAT, default: null },
};

/** What wrods-choose records. */
export const chooseFields = <const>{
  ...exposureFields,
  /** The label that was chosen, or all of several, such as A, C; null when time ran out. */
  response_raw: { type: ParameterType.STRING },
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: { type: ParameterType.INT },
  /** Every press of a label's key or button before the minimum time as [ms from the onset, label]. */
  early_keys: { type: ParameterType.COMPLEX, array: true },
};

/** What wrods-prime is given. */
export const primeParameters = <const>{
  /** The prime. */
  text: { type: ParameterType.STRING, default: undefined },
  /** The forward mask as shown. */
  mask: { type: ParameterType.STRING, default: undefined },
  /** Time of the forward mask, ms. */
  mask_ms: { type: ParameterType.FLOAT, default: undefined },
  /** Frames of the prime; null if its time is given. */
  frames: { type: ParameterType.INT, default: null },
  /** Time of the prime, ms. */
  prime_ms: { type: ParameterType.FLOAT, default: undefined },
  /** The backward mask as shown. */
  backward_mask: { type: ParameterType.STRING, default: null },
  /** Time of the backward mask, ms. */
  backward_ms: { type: ParameterType.FLOAT, default: 0 },
};

/** What wrods-prime records. */
export const primeFields = <const>{
  ...exposureFields,
  /** Frames for which the prime was on the screen. */
  prime_frames: { type: ParameterType.INT },
  /** Time for which the prime was on the screen, ms. */
  prime_ms: { type: ParameterType.FLOAT },
};

/** What wrods-rate is given. */
export const rateParameters = <const>{
  /** Short label before the text. */
  caption: { type: ParameterType.STRING, default: null },
  /** The text to rate; null if there is none. */
  text: { type: ParameterType.STRING, default: null },
  /** The text in fixed lines; null without fixed lines. */
  lines: { type: ParameterType.STRING, array: true, default: [] },
  /** The question below the text. */
  ask: { type: ParameterType.STRING, default: null },
  /** Lowest point of the scale. */
  from: { type: ParameterType.FLOAT, default: undefined },
  /** Highest point of the scale. */
  to: { type: ParameterType.FLOAT, default: undefined },
  /** What the lowest point means. */
  low: { type: ParameterType.STRING, default: null },
  /** What the highest point means. */
  high: { type: ParameterType.STRING, default: null },
  /** The buttons: numbers or names of points; null for a slider. */
  labels: { type: ParameterType.STRING, array: true, default: [] },
  /** The key of each button; empty for a slider and above nine points. */
  keys: { type: ParameterType.KEY, array: true, default: undefined },
  /** Decimals to which a slider is set. */
  decimals: { type: ParameterType.INT, default: 0 },
  /** Time from onset during which keys and buttons have no effect, ms. */
  minimum_ms: { type: ParameterType.FLOAT, default: 0 },
  /** Time from onset after which the trial ends without an answer, ms. */
  time_limit_ms: { type: ParameterType.FLOAT, default: null },
};

/** What wrods-rate records. */
export const rateFields = <const>{
  ...exposureFields,
  /** The point that was chosen, as its button or the slider has it; null when time ran out. */
  response_raw: { type: ParameterType.STRING },
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: { type: ParameterType.INT },
  /** Every press of a key, a button or the slider before the minimum time as [ms from the onset, point]. */
  early_keys: { type: ParameterType.COMPLEX, array: true },
};

/** What wrods-read is given. */
export const readParameters = <const>{
  /** Short label before the text. */
  caption: { type: ParameterType.STRING, default: null },
  /** The text to read. */
  text: { type: ParameterType.STRING, default: undefined },
  /** The text in fixed lines, which a part that is alone on the screen begins; null without fixed lines. */
  lines: { type: ParameterType.STRING, array: true, default: [] },
  /** How the text is shown: whole, moving_window, cumulative, centred, rsvp or maze. */
  as: { type: ParameterType.STRING, default: "whole" },
  /** The words, chunks or sentences that are read one after another; null for a whole text. */
  parts: { type: ParameterType.STRING, array: true, default: [] },
  /** Time of each part, or of the whole text, that ends by itself, ms; null if the reader ends it. */
  part_ms: { type: ParameterType.FLOAT, array: true, default: [] },
  /** Time without text between two parts, ms. */
  blank_ms: { type: ParameterType.FLOAT, default: 0 },
  /** What stands beside each word of a maze; null in other modes. */
  foils: { type: ParameterType.STRING, array: true, default: [] },
  /** The side of each word of a maze, left or right; null in other modes. */
  sides: { type: ParameterType.STRING, array: true, default: [] },
  /** The keys of a maze for the left and the right; null in other modes. */
  keys: { type: ParameterType.KEY, array: true, default: [] },
  /** What follows a foil that is chosen in a maze: end or retry. */
  wrong: { type: ParameterType.STRING, default: "end" },
  /** Minimum time before the reader can continue, ms. */
  minimum_ms: { type: ParameterType.FLOAT, default: 0 },
};

/** What wrods-read records. */
export const readFields = <const>{
  ...exposureFields,
  /** Onset of the text to the key that ended reading; null for a text that ended by itself, or in a maze with a foil, ms. */
  reading_time: { type: ParameterType.FLOAT },
  /** Frames from the onset to the end of a text that ended by itself. */
  shown_frames: { type: ParameterType.INT },
  /** Time from the onset to the end of a text that ended by itself, ms. */
  shown_ms: { type: ParameterType.FLOAT },
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: { type: ParameterType.INT },
  /** Every press before the minimum time as [ms from the onset, key]. */
  early_keys: { type: ParameterType.COMPLEX, array: true },
};

/** What wrods-recover is given. */
export const recoverParameters = <const>{
  /** Short label before the text. */
  caption: { type: ParameterType.STRING, default: null },
  /** The text whose intact form is to be typed. */
  text: { type: ParameterType.STRING, default: undefined },
  /** The text in fixed lines; null without fixed lines. */
  lines: { type: ParameterType.STRING, array: true, default: [] },
  /** The request above the field. */
  ask: { type: ParameterType.STRING, default: null },
  /** Time from onset during which the field accepts no input, ms. */
  minimum_ms: { type: ParameterType.FLOAT, default: 0 },
  /** Time from onset after which the trial ends with the text typed so far, ms. */
  time_limit_ms: { type: ParameterType.FLOAT, default: null },
  /** Whether the answer can have several lines; otherwise Enter submits it. */
  multiline: { type: ParameterType.BOOL, default: false },
};

/** What wrods-recover records. */
export const recoverFields = <const>{
  ...exposureFields,
  /** The typed text, even if time ran out; null if time ran out before anything was typed. */
  response_raw: { type: ParameterType.STRING },
  /** Onset to first key of a typed answer, ms. */
  first_key_ms: { type: ParameterType.FLOAT },
  /** First key to submission of a typed answer, ms. */
  typing_ms: { type: ParameterType.FLOAT },
  /** Pastes and drops that were blocked. */
  paste_count: { type: ParameterType.INT },
  /** Typed characters that no key press accounts for. */
  keyless_chars: { type: ParameterType.INT },
  /** Every text that was not typed, refused or taken back unless the study allows assistive input, as [ms from the onset, how it came]: `paste`, `drop`, an input type of the browser, or `script`. */
  insertions: { type: ParameterType.COMPLEX, array: true },
  /** Presses of a response key before the step's minimum time, which did nothing. */
  early_responses: { type: ParameterType.INT },
  /** Every key stroke before the minimum time as [ms from the onset, key]. */
  early_keys: { type: ParameterType.COMPLEX, array: true },
  /** Every key stroke as [ms from the onset, key]. */
  key_log: { type: ParameterType.COMPLEX, array: true },
};
