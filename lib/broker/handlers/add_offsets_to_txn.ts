/** AddOffsetsToTxn (0–4): takes a group's offsets into a producer's transaction; answered when that is durable. */

import { ErrorCode } from "../../errors.ts";
import { addOffsetsToTxnRequest, addOffsetsToTxnResponse } from "../../protocol/messages/add_offsets_to_txn.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { groupPlaceOf } from "../coordinator_shards.ts";
import { type Handler, later } from "../handler.ts";
import { transactionErrorFor } from "../transaction_errors.ts";

type Request = ValueOf<typeof addOffsetsToTxnRequest>;
type Response = InputOf<typeof addOffsetsToTxnResponse>;

/** Before this a fenced producer is told that its epoch is invalid (KIP-588). */
const FENCED_SINCE = 2;

/** Serves AddOffsetsToTxn. */
export function addOffsetsToTxnHandler(broker: Pick<Broker, "transactions">): Handler<Request, Response> {
  return {
    request: addOffsetsToTxnRequest,
    response: addOffsetsToTxnResponse,
    handle: (request, { apiVersion }) => later(add(broker, request, apiVersion)),
  };
}

async function add({ transactions }: Pick<Broker, "transactions">, request: Request, apiVersion: number) {
  const { transactionalId, groupId } = request;
  const isEmpty = groupId === "";
  const code = isEmpty
    ? ErrorCode.INVALID_GROUP_ID
    : await transactions.add(transactionalId, request, [groupPlaceOf(groupId)]);
  const errorCode = transactionErrorFor(code, { knowsFenced: apiVersion >= FENCED_SINCE, knowsAbortable: true });
  return { throttleTimeMs: 0, errorCode };
}
