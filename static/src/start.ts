/** The start screen, and the screens of a visit that may not simply go on. */

import type { PageConfig } from "./config";
import { element } from "./dom";
import { fill, type Messages } from "./messages";
import { type Action, type Frame, showPage } from "./page";

/** Why a session could not be begun. */
export interface Trouble {
  /** What the server calls it; null for a fault of the study or its server. */
  heading: string | null;
  text: string[];
}

export class StartScreens {
  constructor(
    private readonly config: PageConfig,
    private readonly frame: Frame,
    private readonly messages: Messages,
  ) {}

  /** Welcome a participant whom nobody has to name; resolves when the session is to begin. */
  async begin(trouble: Trouble | null): Promise<void> {
    const { config, messages } = this;
    if (trouble) {
      const again = { name: "again", words: messages.try_again };
      await this.show(trouble.heading ?? messages.start_failed, trouble.text, [again]);
      return;
    }
    const { participant } = config;
    const given = participant && element("p", {}, fill(messages.participant_given, { participant }));
    const content = { heading: messages.welcome, text: [messages.welcome_text], extra: element("div", {}, given) };
    const actions: Action[] = [{ name: "start", words: messages.start, key: "space" }];
    await showPage(this.frame.stage, content, actions, messages, config.language);
  }

  /** Say that the session is open in another tab; resolves with whether to take it over from there. */
  async elsewhere(said: { error?: string; mend?: string; may_take?: boolean }): Promise<boolean> {
    const { open_elsewhere_title, go_on_here, try_again } = this.messages;
    const action = said.may_take ? { name: "take", words: go_on_here } : { name: "again", words: try_again };
    const chosen = await this.show(open_elsewhere_title, [said.error ?? null, said.mend ?? null], [action]);
    return chosen === "take";
  }

  /** Say that an interrupted session begins again. */
  async anew(words: string): Promise<void> {
    await this.show(this.messages.interrupted_title, [words], [{ name: "go_on", words: this.messages.go_on, key: "space" }]);
  }

  /** Say whose session goes on; false where it is somebody else's. */
  async welcomeBack(participant: string | null): Promise<boolean> {
    const { resume_title, resume_text, resume_number, go_on, not_me, someone_else } = this.messages;
    const asked = this.config.ask_participant && participant;
    const text = asked ? [fill(resume_number, { participant }), resume_text] : [resume_text];
    const actions: Action[] = [{ name: "go_on", words: go_on, key: "space" }];
    if (asked) actions.push({ name: "not_me", words: not_me, quiet: true });
    else if (isAnonymous(this.config)) actions.push({ name: "not_me", words: someone_else, quiet: true });
    return (await this.show(resume_title, text, actions)) !== "not_me";
  }

  private async show(heading: string, text: (string | null)[], actions: Action[]): Promise<string> {
    const { frame, messages, config } = this;
    return (await showPage(frame.stage, { heading, text }, actions, messages, config.language)).action;
  }
}

/** Whether nothing but this browser knows whose session it is. */
export function isAnonymous(config: PageConfig): boolean {
  const named = ["PROLIFIC_PID", "workerId", "survey_code", "id", "participant", "invitation", "resume"];
  const known = named.some((name) => config.platform[name]);
  return config.mode === "session" && !config.ask_participant && !config.participant && !known;
}
