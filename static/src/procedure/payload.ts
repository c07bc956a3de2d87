/** One trial's row: what its steps recorded, in the form that the server takes (docs/contracts.md). */

import type { PrimeRecord, ReadRecord, StepRecord, TrialRecord } from "../generated/trials";
import type { OwnData, Recorded } from "../plugins/own";
import type { Region } from "../plugins/self_paced";
import type { Simulated } from "../plugins/simulation";
import type { TypingRecord } from "../plugins/typing";
import type { PlannedTrial } from "./plan";

/** What a step's plugin recorded, with the name and version that jsPsych adds. */
export type StepData = (StepRecord | OwnData) & Simulated & { regions?: Region[]; trial_type: string; plugin_version: string };

const NOT_TYPED: Pick<TrialRecord, keyof TypingRecord & keyof TrialRecord> = {
  insertions: null,
  first_key_ms: null,
  typing_ms: null,
  paste_count: 0,
  keyless_chars: 0,
  key_log: null,
};

export type TrialPayload = TrialRecord & {
  /** What steps of the lab's own trial types recorded, by type. */
  recorded?: Record<string, Recorded>;
  client_uuid: string;
  trial_index: number;
  attempt: number;
  regions: Region[];
  plugin_version: string;
  created_at: string;
};

/** Steps in the order shown; the last one is the answering step, whose times are the row's. */
export function trialPayload(
  trial: PlannedTrial,
  attempt: number,
  steps: readonly StepData[],
  client_uuid: string,
  now: Date,
): TrialPayload {
  const answering = steps.at(-1);
  if (!answering) throw new Error(`trial ${trial.trial_index} recorded no step`);
  const read = steps.find((step): step is ReadRecord & StepData => "reading_time" in step);
  const prime = steps.find((step): step is PrimeRecord & StepData => "prime_frames" in step);
  const own = steps.filter((step): step is OwnData & StepData => "own_type" in step && step.recorded !== null);
  const typed = "key_log" in answering ? answering : NOT_TYPED;
  const total = (field: "dropped_frames" | "hidden_ms" | "blurred_ms"): number =>
    steps.reduce((sum, step) => sum + step[field], 0);
  return {
    client_uuid,
    trial_index: trial.trial_index,
    attempt,
    response_raw: "response_raw" in answering ? answering.response_raw : null,
    timed_out: answering.timed_out,
    rt: "reading_time" in answering || "prime_frames" in answering ? null : answering.rt, // only an answering screen fills rt
    reading_time: read?.reading_time ?? null,
    onset_ts: answering.onset_ts,
    paint_ts: answering.paint_ts,
    response_ts: answering.response_ts,
    handler_ts: answering.handler_ts,
    frame_period: answering.frame_period,
    dropped_frames: total("dropped_frames"),
    hidden_ms: total("hidden_ms"),
    blurred_ms: total("blurred_ms"),
    first_key_ms: typed.first_key_ms,
    typing_ms: typed.typing_ms,
    paste_count: typed.paste_count,
    keyless_chars: typed.keyless_chars,
    key_log: typed.key_log,
    insertions: typed.insertions,
    early_responses: "early_keys" in answering ? answering.early_responses : 0,
    early_keys: "early_keys" in answering ? answering.early_keys : null,
    hint_ms: "hint_ms" in answering ? answering.hint_ms : null,
    prime_frames: prime?.prime_frames ?? null,
    prime_ms: prime?.prime_ms ?? null,
    shown_frames: read?.shown_frames ?? null,
    shown_ms: read?.shown_ms ?? null,
    regions: read?.regions ?? [],
    ...(own.length > 0 && { recorded: Object.fromEntries(own.map((step) => [step.own_type, step.recorded!])) }),
    plugin_version: `${answering.trial_type} ${answering.plugin_version}`,
    created_at: now.toISOString(),
  };
}
