/** What is known of the reader's browser and screen, and the fonts that stimuli need. */

import { type SystemDisplay, systemDisplay } from "./display";
import { frames } from "./timing/frames";

export interface ClientDescription extends SystemDisplay {
  browser: string;
  system: string;
  device: "computer" | "tablet" | "phone";
  width: number;
  height: number;
  pixel_ratio: number;
  cross_origin_isolated: boolean;
  refresh_hz: number | null;
}

const BROWSERS: [name: string, pattern: RegExp][] = [
  ["Edge", /Edg(?:e|A|iOS)?\/([\d.]+)/],
  ["Opera", /OPR\/([\d.]+)/],
  ["Samsung Internet", /SamsungBrowser\/([\d.]+)/],
  ["Firefox", /(?:Firefox|FxiOS)\/([\d.]+)/],
  ["Chrome", /(?:Chrome|CriOS|HeadlessChrome)\/([\d.]+)/],
  ["Safari", /Version\/([\d.]+).*Safari/],
];

const SYSTEMS: [name: string, pattern: RegExp][] = [
  ["Android", /Android ?([\d.]*)/],
  ["iOS", /(?:iPhone|iPad|iPod).*?OS ([\d_]+)/],
  ["Windows", /Windows NT ([\d.]+)/],
  ["macOS", /Mac OS X ([\d_.]+)/],
  ["ChromeOS", /CrOS \S+ ([\d.]+)/],
  ["Linux", /(?:Linux|X11)/],
];

function match(table: [string, RegExp][], agent: string): string {
  for (const [name, pattern] of table) {
    const found = pattern.exec(agent);
    if (found) return [name, found[1]?.replaceAll("_", ".")].filter(Boolean).join(" ");
  }
  return "unknown";
}

export function describeAgent(agent: string, touchPoints: number): Pick<ClientDescription, "browser" | "system" | "device"> {
  const iPadAsMac = /Macintosh/.test(agent) && touchPoints > 1;
  const tablet = iPadAsMac || /iPad|Tablet/.test(agent) || (/Android/.test(agent) && !/Mobile/.test(agent));
  const phone = !tablet && /iPhone|iPod|Mobile/.test(agent);
  return {
    browser: match(BROWSERS, agent),
    system: iPadAsMac ? "iPadOS" : match(SYSTEMS, agent),
    device: tablet ? "tablet" : phone ? "phone" : "computer",
  };
}

export async function describeClient(): Promise<ClientDescription> {
  if (frames.period === null) await Promise.race([frames.wait(300), sleep(1000)]);
  return {
    ...describeAgent(navigator.userAgent, navigator.maxTouchPoints),
    width: window.innerWidth,
    height: window.innerHeight,
    pixel_ratio: window.devicePixelRatio,
    cross_origin_isolated: window.crossOriginIsolated,
    refresh_hz: frames.period === null ? null : 1000 / frames.period,
    ...systemDisplay(),
  };
}

/** Load the letters of all stimuli, so that none is drawn in one font and redrawn in another. */
export async function loadLetters(texts: string): Promise<void> {
  const fonts = ['400 1rem "Source Code Pro Variable"', '400 1rem "Source Sans 3 Variable"', '600 1rem "Source Sans 3 Variable"'];
  const loading = fonts.map((font) => document.fonts.load(font, texts));
  await Promise.race([Promise.allSettled(loading), sleep(4000)]);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
