/**
 * TxnOffsetCommit (0–5): offsets that are seen when the producer's transaction is committed. Answered when they are
 * durable. From version 5 on the group joins the transaction by this request (KIP-890); before, it has to be part of it.
 */

import { ErrorCode } from "../../errors.ts";
import type { OffsetToCommit } from "../../groups/coordinator.ts";
import { txnOffsetCommitRequest, txnOffsetCommitResponse } from "../../protocol/messages/txn_offset_commit.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { type Handler, later } from "../handler.ts";
import { transactionErrorFor } from "../transaction_errors.ts";

type Request = ValueOf<typeof txnOffsetCommitRequest>;
type Response = InputOf<typeof txnOffsetCommitResponse>;
type Serving = Pick<Broker, "groups" | "topics" | "transactions">;

/** From here on TRANSACTION_ABORTABLE is known. */
const ABORTABLE_SINCE = 4;
/** From here on the group joins the transaction by this request. */
const JOINS_SINCE = 5;

/** Serves TxnOffsetCommit. */
export function txnOffsetCommitHandler(broker: Serving): Handler<Request, Response> {
  return {
    request: txnOffsetCommitRequest,
    response: txnOffsetCommitResponse,
    handle: (request, { apiVersion }) => later(commit(broker, request, apiVersion)),
  };
}

async function commit(
  { groups, topics, transactions }: Serving,
  request: Request,
  apiVersion: number,
): Promise<Response> {
  const { transactionalId, groupId, producerId } = request;
  const offsets: OffsetToCommit[] = [];
  const places: { errorCode: number }[] = [];
  const answered = request.topics.map(({ name, partitions }) => {
    const count = topics.get(name)?.partitionCount ?? 0;
    return {
      name,
      partitions: partitions.map(({ partitionIndex, committedOffset, committedLeaderEpoch, committedMetadata }) => {
        if (partitionIndex < 0 || partitionIndex >= count) {
          return { partitionIndex, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION as number };
        }
        const place = { partitionIndex, errorCode: ErrorCode.NONE as number };
        places.push(place);
        offsets.push({
          topic: name,
          partition: partitionIndex,
          offset: committedOffset,
          leaderEpoch: committedLeaderEpoch,
          metadata: committedMetadata ?? "",
        });
        return place;
      }),
    };
  });
  const participants = { partitions: [], groups: [groupId] };
  let refusal: ErrorCode = groupId === "" ? ErrorCode.INVALID_GROUP_ID : ErrorCode.NONE;
  if (refusal === ErrorCode.NONE && apiVersion >= JOINS_SINCE) {
    refusal = await transactions.add(transactionalId, request, participants);
  }
  // Nothing may come between this and the commit: the offsets of a transaction that is ending would never be ended.
  refusal ||= transactions.verify(transactionalId, request, participants);
  const outcome = refusal !== ErrorCode.NONE
    ? transactionErrorFor(refusal, { knowsFenced: false, knowsAbortable: apiVersion >= ABORTABLE_SINCE })
    : await groups.commit({
      groupId,
      producerId,
      memberId: request.memberId,
      instanceId: request.groupInstanceId,
      generationId: request.generationId,
      retentionMs: -1,
      offsets,
    });
  places.forEach((place, at) => place.errorCode = Array.isArray(outcome) ? outcome[at] : outcome);
  return { throttleTimeMs: 0, topics: answered };
}
