/** What plugins are given beside a step of the plan (../generated/trials). */

import { ParameterType } from "jspsych";

export const pageParameters = <const>{
  /** Language of the texts (BCP 47). */
  language: { type: ParameterType.STRING, default: "en" },
  /** Language of the items, where it is another one. */
  items_language: { type: ParameterType.STRING, default: null },
  /** Colours and size of the text, where the study sets them. */
  style: { type: ParameterType.OBJECT, default: null },
  /** Pictures, sounds and films of the item, for steps that show some. */
  media: { type: ParameterType.COMPLEX, array: true, default: [] },
  /** The page's own words. */
  messages: { type: ParameterType.OBJECT, default: undefined },
};

export const pictureParameters = <const>{
  /** The picture of each label, where the choices are pictures. */
  pictures: { type: ParameterType.COMPLEX, array: true, default: [] },
};

export const setParameters = <const>{
  /** Whether any number of labels is ticked, at least one. */
  several: { type: ParameterType.BOOL, default: false },
};

export const typedParameters = <const>{
  /** Whether text may come from dictation, voice control or an on-screen keyboard. */
  assistive_input: { type: ParameterType.BOOL, default: false },
};

export const exemplarParameters = <const>{
  /** Solved examples shown above the item. */
  exemplars: { type: ParameterType.COMPLEX, array: true, default: [] },
};
