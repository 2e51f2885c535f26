/** Refusals of the transaction coordinator as the versions of the requests know them. */

import { ErrorCode } from "../errors.ts";

/** What a version of a request knows. */
export interface KnownErrors {
  /** PRODUCER_FENCED (KIP-588); without it, INVALID_PRODUCER_EPOCH. */
  readonly knowsFenced: boolean;
  /** TRANSACTION_ABORTABLE (KIP-890); without it, INVALID_TXN_STATE. */
  readonly knowsAbortable: boolean;
}

/** The code to answer with. */
export function transactionErrorFor(errorCode: ErrorCode, { knowsFenced, knowsAbortable }: KnownErrors): ErrorCode {
  if (errorCode === ErrorCode.PRODUCER_FENCED && !knowsFenced) return ErrorCode.INVALID_PRODUCER_EPOCH;
  if (errorCode === ErrorCode.TRANSACTION_ABORTABLE && !knowsAbortable) return ErrorCode.INVALID_TXN_STATE;
  return errorCode;
}

/** From this Produce version on TRANSACTION_ABORTABLE is known. */
const PRODUCE_ABORTABLE_SINCE = 11;

/**
 * The code for a Produce request whose transaction does not take it. Producers do not expect the coordinator's passing
 * refusals there: they get one that has them repeat the request without asking for metadata first.
 */
export function produceErrorFor(errorCode: ErrorCode, apiVersion: number): ErrorCode {
  switch (errorCode) {
    case ErrorCode.CONCURRENT_TRANSACTIONS:
    case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
    case ErrorCode.COORDINATOR_NOT_AVAILABLE:
    case ErrorCode.NOT_COORDINATOR:
      return ErrorCode.NOT_ENOUGH_REPLICAS;
    default:
      return transactionErrorFor(errorCode, {
        knowsFenced: false,
        knowsAbortable: apiVersion >= PRODUCE_ABORTABLE_SINCE,
      });
  }
}
