/**
 * Watches a text field: when keys were struck, what entered without a key stroke, what was pasted or dropped.
 *
 * A key stroke puts at most one character into the text. What comes in beyond that, or takes the place of other text, came
 * from a paste that slipped through, autofill, dictation, a translator, an extension or a script: it is counted as keyless,
 * and the field goes back to what was typed. What an input method composes out of key strokes is typing, and counted by itself;
 * a composition without a stroke is dictation or handwriting. Where a study allows assistive input, what comes without keys is
 * counted and kept, except pastes, drops and scripts.
 */

import type { ExposureRecord, RecoverRecord } from "../generated/trials";
import { frames } from "../timing/frames";
import type { EarlyRecord } from "./minimum";

const LONGEST_LOG = 4000;
/** Letters that one key writes at most (the lam-alef keys of Arabic keyboards write two, some Indic keys three). */
const LARGEST_LIGATURE = 3;
const ENTERING = new Set(["Enter", "Process", "Unidentified", "Dead", "Compose", "Backspace", "Delete"]);
/** Ways into a field that are refused, beside the paste and drop events: yanking, and a spelling chosen for a word. */
const REFUSED = new Set(["insertFromPaste", "insertFromPasteAsQuotation", "insertFromDrop", "insertFromYank", "insertReplacementText"]);
/** An input method rewrites what it composes; only growth tells there. */
const COMPOSING = new Set(["insertCompositionText", "insertFromComposition", "deleteCompositionText"]);
const NOT_TYPING = new Set(["Shift", "Control", "Alt", "Meta", "AltGraph", "CapsLock", "Tab", "Escape", "NumLock"]);
/** How a change is called that no input event told, or one that names no way of typing. */
const SCRIPT = "script";

/** What of a typed answer's record the watch tells; `composed_chars` were composed by an input method out of key strokes. */
export type TypingRecord = Omit<RecoverRecord, keyof ExposureRecord | keyof EarlyRecord | "response_raw"> & { composed_chars: number };

interface Caret {
  start: number;
  end: number;
}

export class TypingWatch {
  private readonly log: TypingRecord["key_log"] = [];
  private readonly insertions: TypingRecord["insertions"] = [];
  /** Strokes that may each still bring a letter, and the letters on their keys. */
  private strokes = 0;
  private letters = "";
  /** Letters that the last key may bring in an event of their own: a key of an Arabic keyboard writes two. */
  private spare = 0;
  private pastes = 0;
  private keyless = 0;
  private known: string;
  private caret: Caret = { start: 0, end: 0 };
  private composed = 0;
  /** The text at the start of a composition and the strokes in it; null outside one. */
  private composition: { before: string; strokes: number } | null = null;
  private readonly listening = new AbortController();
  private readonly leaveFrames: () => void;

  constructor(
    private readonly field: HTMLInputElement | HTMLTextAreaElement,
    private readonly onset: number,
    private readonly onRefused: () => void,
    private readonly isAssisted = false,
  ) {
    this.known = field.value;
    const options = { signal: this.listening.signal };
    field.addEventListener("keydown", (event) => this.strike(event as KeyboardEvent), options);
    field.addEventListener("input", (event) => this.account((event as InputEvent).inputType ?? "", event.timeStamp), options);
    field.addEventListener("compositionstart", () => (this.composition = { before: this.known, strokes: this.strokes }), options);
    field.addEventListener("compositionend", (event) => this.endComposition(event.timeStamp), options);
    for (const kind of ["paste", "drop"]) {
      field.addEventListener(kind, (event) => this.refuse(event, kind), options);
    }
    field.addEventListener("dragover", (event) => event.preventDefault(), options); // so that the drop comes here
    field.addEventListener(
      "beforeinput",
      (event) => {
        const { inputType, data } = event as InputEvent;
        // One letter put in the place of another is an accent from the keyboard's own menu.
        const isAccent = inputType === "insertReplacementText" && data !== null && length(data) === 1;
        const isWanted = isAccent || (this.isAssisted && inputType === "insertReplacementText");
        if (REFUSED.has(inputType) && !isWanted) this.refuse(event, inputType);
      },
      options,
    );
    // A script may set the field's text without any event.
    this.leaveFrames = frames.onEachFrame((now) => {
      if (this.field.value !== this.known) this.account(SCRIPT, now);
      else this.caret = { start: this.field.selectionStart ?? 0, end: this.field.selectionEnd ?? 0 };
    });
  }

  private refuse(event: Event, how: string): void {
    event.preventDefault();
    this.pastes += 1;
    this.note(event.timeStamp, how);
    this.onRefused();
  }

  private note(at: number, how: string): void {
    if (this.insertions.length < LONGEST_LOG) this.insertions.push([at - this.onset, how]);
  }

  private strike(event: KeyboardEvent): void {
    if (this.field.readOnly || !isStroke(event) || event.timeStamp < this.onset) return;
    this.spare = 0;
    if (mayType(event)) {
      const written = isWritten(event.key) ? length(event.key) : 0;
      this.strokes += Math.max(1, written);
      if (written) this.letters += event.key;
      // Browsers that cannot name such a key call it unidentified, and enter its letters one by one.
      this.spare = event.key === "Unidentified" ? 1 : Math.max(0, written - 1);
    }
    if (!event.repeat && this.log.length < LONGEST_LOG) this.log.push([event.timeStamp - this.onset, event.key]);
  }

  private account(inputType: string, at: number): void {
    const { value } = this.field;
    if (inputType.startsWith("history")) {
      this.keep(); // undone or redone: the letters were typed before
      return;
    }
    if (this.composition || COMPOSING.has(inputType)) {
      if (this.composition) this.composition.strokes += this.strokes;
      else this.countComposed(this.known, this.strokes, at); // some browsers enter the text after the composition's end
      this.keep();
      return;
    }
    const entered = inserted(this.known, value);
    const isTyping = inputType.startsWith("insert") || inputType.startsWith("delete");
    const isTold = isTyping || (inputType === "" && entered > 0); // old browsers do not say how
    const isSecond = inputType === "insertText" && entered === 1 && this.strokes === 0 && this.spare > 0;
    if (isSecond) this.spare -= 1;
    if (isSecond || (isTold && entered <= this.strokes)) {
      this.keep();
      return;
    }
    if (value === this.known) return;
    this.note(at, isTyping ? inputType : SCRIPT);
    if (this.isAssisted && isTyping) {
      this.keyless += Math.max(0, entered - this.strokes);
      this.keep();
      return;
    }
    this.keyless += Math.max(0, entered - this.takeBack());
    this.onRefused();
  }

  private endComposition(at: number): void {
    if (!this.composition) return;
    const { before, strokes } = this.composition;
    this.composition = null;
    this.countComposed(before, strokes + this.strokes, at);
    this.keep();
  }

  /** Count what a composition entered beside `before`: as composed where keys were struck for it, else as keyless. */
  private countComposed(before: string, strokes: number, at: number): void {
    const entered = inserted(before, this.field.value);
    if (strokes > 0) this.composed += entered;
    else if (entered > 0) {
      this.keyless += entered;
      this.note(at, "insertCompositionText");
    }
  }

  private keep(): void {
    this.strokes = 0;
    this.letters = "";
    this.known = this.field.value;
    this.caret = { start: this.field.selectionStart ?? 0, end: this.field.selectionEnd ?? 0 };
  }

  /**
   * Let the field hold again what was typed: also the letters of keys that what came in begins or ends with.
   *
   * Returns how many characters of what came in were typed.
   */
  private takeBack(): number {
    const { letters, strokes } = this;
    const before = [...this.known];
    const { start, end } = sharedEnds(this.known, this.field.value);
    const now = [...this.field.value];
    const came = now.slice(start, now.length - end).join("");
    const isFirst = came.startsWith(letters);
    if (letters && (isFirst || came.endsWith(letters))) {
      const from = isFirst ? before.slice(0, start).join("").length : this.caret.start;
      const to = isFirst ? before.slice(0, before.length - end).join("").length : this.caret.end;
      this.field.value = this.known.slice(0, from) + letters + this.known.slice(to);
      this.field.setSelectionRange(from + letters.length, from + letters.length);
      this.keep();
      return strokes;
    }
    // The strokes stay: the letter of a key may come after what an extension put in at that key.
    this.field.value = this.known;
    const last = this.known.length;
    this.field.setSelectionRange(Math.min(this.caret.start, last), Math.min(this.caret.end, last));
    return 0;
  }

  /** Stop watching at the submission, or at null where time ran out; the key that submits is no typing. */
  stop(submit: Event | null): TypingRecord {
    const last = this.log.at(-1);
    if (last && submit instanceof KeyboardEvent && last[0] === submit.timeStamp - this.onset) {
      this.log.pop();
      this.strokes = 0;
      this.letters = "";
    }
    if (this.field.value !== this.known) this.account(SCRIPT, submit?.timeStamp ?? performance.now());
    this.listening.abort();
    this.leaveFrames();
    const first = this.log[0]?.[0] ?? null;
    const end = (submit?.timeStamp ?? performance.now()) - this.onset;
    return {
      first_key_ms: first,
      typing_ms: first === null ? null : end - first,
      paste_count: this.pastes,
      keyless_chars: this.keyless,
      insertions: this.insertions,
      key_log: this.log,
      composed_chars: this.composed,
    };
  }
}

/** Whether a key event is a stroke of typing or editing, not one that only changes what others do. */
export function isStroke(event: KeyboardEvent): boolean {
  return !NOT_TYPING.has(event.key);
}

/** Whether a key stroke may enter a character: a letter, or the parts of one in input methods and on touch keyboards. */
function mayType(event: KeyboardEvent): boolean {
  if (event.ctrlKey !== event.altKey || event.metaKey) return false; // AltGr is Ctrl and Alt on some systems
  return isWritten(event.key) || ENTERING.has(event.key);
}

/** Whether a key's name is what it writes: one character, or the few of a ligature's key; other keys have names in Latin letters. */
function isWritten(key: string): boolean {
  return length(key) === 1 || (length(key) <= LARGEST_LIGATURE && !/^[\x20-\x7e]+$/.test(key));
}

/** How many characters of a new text do not stand in the old one: what lies between their common start and end. */
export function inserted(before: string, after: string): number {
  const { start, end } = sharedEnds(before, after);
  return length(after) - start - end;
}

/** How many characters two texts share at their start, and at their end. */
function sharedEnds(before: string, after: string): { start: number; end: number } {
  const [old, now] = [[...before], [...after]];
  const shorter = Math.min(old.length, now.length);
  let start = 0;
  while (start < shorter && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < shorter - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  return { start, end };
}

function length(text: string): number {
  return [...text].length;
}
