/**
 * InitProducerId (0–6). Without a transactional id: a new id, unused for ever, whatever id and epoch the producer names
 * (KIP-360: its sequences start anew). With one: the caller becomes the one producer under that id, see
 * lib/transactions/transaction.ts. Transactions that are prepared elsewhere (KIP-939) are not served.
 */
import { ErrorCode } from "../../errors.ts";
import { initProducerIdRequest, initProducerIdResponse } from "../../protocol/messages/init_producer_id.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { type Handler, later } from "../handler.ts";
import { newProducerId } from "../transaction_coordination.ts";
import { transactionErrorFor } from "../transaction_errors.ts";

type Request = ValueOf<typeof initProducerIdRequest>;
type Response = InputOf<typeof initProducerIdResponse>;
type Serving = Pick<Broker, "producerIds" | "transactions" | "logger">;

/** Before this a fenced producer is told that its epoch is invalid (KIP-588). */
const FENCED_SINCE = 4;

/** Serves InitProducerId. */
export function initProducerIdHandler(broker: Serving): Handler<Request, Response> {
  return {
    request: initProducerIdRequest,
    response: initProducerIdResponse,
    handle: (request, { apiVersion }) => later(init(broker, request, apiVersion)),
  };
}

async function init(
  { producerIds, transactions, logger }: Serving,
  { transactionalId, transactionTimeoutMs: timeoutMs, producerId, producerEpoch, enable2Pc, keepPreparedTxn }: Request,
  apiVersion: number,
): Promise<Response> {
  if (transactionalId === null) {
    const freshId = await newProducerId(producerIds, logger);
    if (freshId === null) return refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE);
    return { ...refusal(ErrorCode.NONE), producerId: freshId, producerEpoch: 0 };
  }
  if (transactionalId === "") return refusal(ErrorCode.INVALID_REQUEST);
  if (enable2Pc) return refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
  if (keepPreparedTxn) return refusal(ErrorCode.UNSUPPORTED_VERSION);
  // An id without an epoch, or the other way round, is nobody.
  if ((producerId < 0) !== (producerEpoch < 0)) return refusal(ErrorCode.INVALID_REQUEST);
  const expected = producerId < 0 ? null : { producerId, producerEpoch };
  const reply = await transactions.init(transactionalId, { expected, timeoutMs });
  const known = { knowsFenced: apiVersion >= FENCED_SINCE, knowsAbortable: true };
  return { throttleTimeMs: 0, ...reply, errorCode: transactionErrorFor(reply.errorCode, known) };
}

function refusal(errorCode: ErrorCode): Response {
  return { throttleTimeMs: 0, errorCode, producerId: -1, producerEpoch: -1 };
}
