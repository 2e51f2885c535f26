/** A request's refusal as a value: Kafka's error code and the sentence that tells why. */

import type { ErrorCode } from "../errors.ts";

export interface Refusal {
  readonly errorCode: ErrorCode;
  readonly message: string;
}

/** A refusal of these two. */
export function refuse(errorCode: ErrorCode, message: string): Refusal {
  return { errorCode, message };
}

/** Whether an outcome is a refusal. Outcomes that can be one carry no `errorCode` of their own. */
export function isRefusal(outcome: object): outcome is Refusal {
  return "errorCode" in outcome;
}
