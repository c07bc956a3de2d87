/** Pictures, sounds and films of a study: loaded before the first trial, shown with a trial, and started with its onset. */

import { element } from "./dom";

/** A file that a step shows, as the plan says it. */
export interface MediaFile {
  kind: "image" | "audio" | "video";
  /** The name under which the server sends it. */
  name: string;
  /** What it shows or says, for those who cannot see or hear it. */
  text: string | null;
}

/** When a sound or film began: the clock when it was started, and how late the browser expects to be heard, ms. */
export interface Start {
  kind: MediaFile["kind"];
  name: string;
  start_ts: number;
  /** Null where the browser does not say. */
  latency_ms: number | null;
}

const TRIES = 4;
const WAIT_MS = 1000;

/** What a page has loaded, and what it started since it was last asked. */
export class MediaLibrary {
  /** Where the server sends the files from. */
  base = "";
  private readonly images = new Map<string, HTMLImageElement>();
  private readonly films = new Map<string, HTMLVideoElement>();
  private readonly sounds = new Map<string, AudioBuffer>();
  private readonly playing = new Set<AudioBufferSourceNode>();
  private context: AudioContext | null = null;
  private starts: Start[] = [];

  /** Load files, each once; rejects with the first that does not come in several tries. */
  async load(files: readonly MediaFile[]): Promise<void> {
    const wanted = new Map(files.map((file) => [file.name, file]));
    await Promise.all([...wanted.values()].map((file) => this.loadOne(file)));
  }

  /** The element that shows a file; a sound is heard and shows nothing. */
  show({ kind, name, text }: MediaFile): HTMLElement {
    if (kind === "image") {
      const image = this.images.get(name) ?? element("img", { src: this.base + name });
      image.alt = text ?? "";
      return image;
    }
    if (kind === "video") {
      const film = this.films.get(name) ?? element("video", { src: this.base + name });
      film.setAttribute("aria-label", text ?? "");
      film.dataset["starts"] = name;
      return film;
    }
    return element("span", { class: "sound", "data-starts": name });
  }

  /** Start the sounds and films of a screen that was just drawn. */
  start(screen: ParentNode): void {
    for (const part of screen.querySelectorAll<HTMLElement>("[data-starts]")) {
      const name = part.dataset["starts"] ?? "";
      if (part instanceof HTMLVideoElement) {
        part.currentTime = 0;
        void part.play().catch(() => {});
        this.starts.push({ kind: "video", name, start_ts: performance.now(), latency_ms: null });
      } else {
        this.sound(name);
      }
    }
  }

  /** Stop what still sounds or runs. */
  stop(): void {
    for (const source of this.playing) source.stop();
    this.playing.clear();
    for (const film of this.films.values()) film.pause();
  }

  /** What was started since this was last asked. */
  takeStarts(): Start[] {
    const starts = this.starts;
    this.starts = [];
    return starts;
  }

  private sound(name: string): void {
    const buffer = this.sounds.get(name);
    if (!buffer || !this.context) return;
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    source.onended = () => this.playing.delete(source);
    source.start();
    this.playing.add(source);
    const { outputLatency, baseLatency } = this.context;
    const latency = outputLatency || baseLatency; // Safari says the second alone
    this.starts.push({ kind: "audio", name, start_ts: performance.now(), latency_ms: latency ? 1000 * latency : null });
  }

  private async loadOne(file: MediaFile): Promise<void> {
    const known: ReadonlyMap<string, unknown> = { image: this.images, audio: this.sounds, video: this.films }[file.kind];
    for (let left = TRIES; !known.has(file.name); left -= 1) {
      try {
        await this.read(file);
      } catch (fault) {
        if (left <= 1) throw new Error(`${file.kind} ${file.name} could not be loaded: ${String(fault)}`);
        await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
      }
    }
  }

  private async read({ kind, name }: MediaFile): Promise<void> {
    const address = this.base + name;
    if (kind === "image") {
      const image = element("img", { src: address, draggable: "false", decoding: "sync" });
      await image.decode();
      this.images.set(name, image);
    } else if (kind === "audio") {
      const answer = await fetch(address);
      if (!answer.ok) throw new Error(String(answer.status));
      this.context ??= new AudioContext({ latencyHint: "interactive" });
      this.sounds.set(name, await this.context.decodeAudioData(await answer.arrayBuffer()));
      void this.context.resume().catch(() => {}); // allowed after the click or key that began the session
    } else {
      const film = element("video", { preload: "auto", playsinline: true, src: address });
      await new Promise((resolve, reject) => {
        film.addEventListener("canplaythrough", resolve, { once: true });
        film.addEventListener("error", () => reject(new Error("error")), { once: true });
        film.load();
      });
      this.films.set(name, film);
    }
  }
}

export const library = new MediaLibrary();

/** A stimulus with its pictures and films above it; null where there is neither. */
export function withMedia(files: readonly MediaFile[], stimulus: HTMLElement | null): HTMLElement | null {
  if (files.length === 0) return stimulus;
  return element("div", { class: "media" }, ...files.map((file) => library.show(file)), stimulus);
}

/** The element whose paint is timed: the picture, or else the text. */
export function timedPart(shown: HTMLElement): HTMLElement {
  return shown.querySelector<HTMLElement>("img, video, .stimulus") ?? shown;
}
