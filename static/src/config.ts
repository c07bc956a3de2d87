/** What the server says about this page: the JSON in `#wrods-config`. */

import type { Messages } from "./messages";
import type { Plan } from "./procedure/plan";
import type { Finished } from "./sending/api";

export interface PageConfig {
  api: string;
  /** Where pictures, sounds and films of the items are sent from. */
  media: string;
  study: string;
  title: string;
  language: string;
  /** The direction in which the language is written. */
  direction: "ltr" | "rtl";
  /** The texts of the language's pack. */
  messages: Messages;
  mode: "session" | "pilot" | "preview";
  participant: string | null;
  platform: Record<string, string>;
  /** What the server has signed for this visit: a pilot, or an arrival by a signed link. */
  pass: string | null;
  ask_participant: boolean;
  /** The link is one person's, and opens their session in any browser. */
  any_browser: boolean;
  /** The page stands on one of a lab's stations, whose name is asked for. */
  stations: boolean;
  /** The station's name, where the address gives it. */
  station: string | null;
  /** Where an experimenter reads how a station gets a secure connection. */
  station_help: string | null;
  /** How long the last page waits for the server to confirm every answer before it offers a copy of them, ms. */
  finish_wait_ms: number;
  /** The way back of somebody who declines, stops or has their answers deleted. */
  if_left: Partial<Pick<Finished, "completion_code" | "return_url" | "return_text">>;
  preview_plan: Plan | null;
  /** Where the plugins of a lab's own trial types are. */
  plugins: string;
}

const DEFAULTS = { media: "", mode: "session", participant: null, platform: {}, pass: null, ask_participant: false, any_browser: false, stations: false, station: null, station_help: null, finish_wait_ms: 60_000, if_left: {}, preview_plan: null, plugins: "" };

export function readConfig(page: Document): PageConfig {
  const holder = page.getElementById("wrods-config");
  if (!holder?.textContent) throw new Error("the page has no wrods-config; the server's template must hold one");
  return { ...DEFAULTS, ...(JSON.parse(holder.textContent) as object) } as PageConfig;
}
