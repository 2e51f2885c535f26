/**
 * EndTxn (0–5): commits or aborts a transaction. From version 5 on every end raises the producer's epoch, and the answer
 * tells it (KIP-890).
 */

import { endTxnRequest, endTxnResponse } from "../../protocol/messages/end_txn.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { type Handler, later } from "../handler.ts";
import { transactionErrorFor } from "../transaction_errors.ts";

type Request = ValueOf<typeof endTxnRequest>;
type Response = InputOf<typeof endTxnResponse>;

/** Before this a fenced producer is told that its epoch is invalid (KIP-588). */
const FENCED_SINCE = 2;
/** From here on every end raises the epoch. */
const EPOCH_RISES_SINCE = 5;

/** Serves EndTxn. */
export function endTxnHandler(broker: Pick<Broker, "transactions">): Handler<Request, Response> {
  return {
    request: endTxnRequest,
    response: endTxnResponse,
    handle: (request, { apiVersion }) => later(end(broker, request, apiVersion)),
  };
}

async function end(
  { transactions }: Pick<Broker, "transactions">,
  { transactionalId, producerId, producerEpoch, committed }: Request,
  apiVersion: number,
): Promise<Response> {
  const ended = await transactions.end(transactionalId, {
    producerId,
    producerEpoch,
    commits: committed,
    protocol: apiVersion >= EPOCH_RISES_SINCE ? 2 : 1,
  });
  const known = { knowsFenced: apiVersion >= FENCED_SINCE, knowsAbortable: true };
  return { throttleTimeMs: 0, ...ended, errorCode: transactionErrorFor(ended.errorCode, known) };
}
