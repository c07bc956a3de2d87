/** Keys as studies name them, as browsers report them and as people read them on a key cap. */

import known from "../../experiment/study/keys.json";
import type { Messages } from "./messages";

const ALIASES: Record<string, string> = known.aliases;
const CAPS: Record<string, string> = Object.fromEntries(
  Object.entries(known.named).map(([sent, cap]) => [sent.toLowerCase(), cap]),
);
const ROWS = ["1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm"];

/** One name for a key, whatever the case, the shift lock, the script of a digit or the spelling; as in experiment/study/format.py. */
export function keyName(key: string): string {
  const narrow = key.replace(/[！-～]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0));
  const lower = narrow.toLowerCase().replaceAll("i\u0307", "i").normalize("NFC").replaceAll("ı", "i");
  const code = lower.length === 1 ? lower.charCodeAt(0) : NaN;
  const zero = [...known.zeros].find((sign) => code >= sign.charCodeAt(0) && code < sign.charCodeAt(0) + 10);
  if (zero !== undefined) return String(code - zero.charCodeAt(0));
  return ALIASES[lower] ?? lower;
}

/**
 * Which of some keys was struck, -1 for none.
 *
 * Where none has what the stroke writes, its place counts: `f` is also where a Cyrillic, Greek or Hangul layout writes
 * another letter, and `1` also where a French one writes `&`.
 */
export function struckKey(event: KeyboardEvent, keys: readonly string[]): number {
  if (!isPlainStroke(event)) return -1;
  const names = keys.map(keyName);
  const written = names.indexOf(keyName(event.key));
  if (written >= 0) return written;
  const place = /^(?:Key([A-Z])|Digit([0-9]))$/.exec(event.code);
  const isOtherScript = /^\p{L}$/u.test(event.key) && !/\p{Script=Latin}/u.test(event.key);
  if (place?.[1] && isOtherScript) return names.indexOf(place[1].toLowerCase());
  return place?.[2] && keyName(event.key) !== place[2] && !/^\p{Nd}$/u.test(event.key) ? names.indexOf(place[2]) : -1;
}

export function keyCap(key: string, messages: Messages): string {
  const name = keyName(key);
  if (name === "space") return messages.key_space;
  if (name === "enter") return messages.key_enter;
  if (name === "control") return messages.key_control;
  return CAPS[name] ?? (name.length === 1 ? name.toUpperCase() : key);
}

/** Where a key lies from left to right, null where that is not known. */
export function keyColumn(key: string): number | null {
  const name = keyName(key);
  if (name === "arrowleft") return 0;
  if (name === "arrowright") return 9;
  const columns = ROWS.map((row) => row.indexOf(name)).filter((column) => column >= 0);
  return name.length === 1 ? (columns[0] ?? null) : null;
}

/**
 * The order in which to lay out choices on the screen: two plain choices as their keys lie on the keyboard, so that the
 * left key is the left button; all others in the order of the plan.
 */
export function layoutOrder(keys: readonly string[], hasOptions: boolean): number[] {
  const order = keys.map((_, index) => index);
  const [first, second] = keys.map(keyColumn);
  if (keys.length !== 2 || hasOptions || first == null || second == null) return order;
  return first <= second ? order : order.reverse();
}

/**
 * Whether a key event is a plain stroke for the study: no shortcut of the browser or the system, none for the Stop control;
 * AltGr is Ctrl and Alt on some systems.
 */
export function isPlainStroke(event: KeyboardEvent): boolean {
  if (event.ctrlKey !== event.altKey || event.metaKey || event.isComposing) return false;
  return !(event.target instanceof Element && event.target.closest(".stop, dialog"));
}
