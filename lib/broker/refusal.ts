/** A request's refusal as a value: Kafka's error code and the sentence that tells why. */

import type { ErrorCode } from "../errors.ts";

export interface Refusal {
  readonly errorCode: ErrorCode;
  readonly message: string;
}

/** Longest message, in characters: it may quote what a client sent, and the wire carries 32,767 bytes at most. */
const MAX_MESSAGE_LENGTH = 1000;

/** A refusal of these two; a long message is cut. */
export function refuse(errorCode: ErrorCode, message: string): Refusal {
  const cut = message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;
  return { errorCode, message: cut };
}

/** Whether an outcome is a refusal. Outcomes that can be one carry no `errorCode` of their own. */
export function isRefusal(outcome: object): outcome is Refusal {
  return "errorCode" in outcome;
}
