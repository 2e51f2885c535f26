/**
 * TxnOffsetCommit (0–5): offsets that are seen when the producer's transaction is committed. Answered when they are
 * durable. From version 5 on the group joins the transaction by this request (KIP-890); before, it has to be part of it.
 */

import { ErrorCode } from "../../errors.ts";
import type { OffsetToCommit } from "../../groups/coordinator.ts";
import { txnOffsetCommitRequest, txnOffsetCommitResponse } from "../../protocol/messages/txn_offset_commit.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import { groupPlaceOf } from "../coordinator_shards.ts";
import { type Handler, later } from "../handler.ts";
import { transactionErrorFor } from "../transaction_errors.ts";
import { participate } from "../transaction_participation.ts";

type Request = ValueOf<typeof txnOffsetCommitRequest>;
type Response = InputOf<typeof txnOffsetCommitResponse>;
type Serving = Pick<
  Broker,
  "groups" | "topics" | "transactions" | "cluster" | "links" | "guards" | "nodeId" | "partitions"
>;

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

async function commit(broker: Serving, request: Request, apiVersion: number): Promise<Response> {
  const { groups, topics } = broker;
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
  const refusal = groupId === "" ? ErrorCode.INVALID_GROUP_ID : groups.availabilityOf(groupId);
  const place = groupPlaceOf(groupId);
  const admission = refusal !== ErrorCode.NONE
    ? null
    : await participate(broker, transactionalId, request, [place], apiVersion >= JOINS_SINCE);
  // Nothing may come between this and the commit: the offsets of a transaction that is ending would never be ended.
  const verdict = admission?.refusalOf(place) ?? refusal;
  const known = { knowsFenced: false, knowsAbortable: apiVersion >= ABORTABLE_SINCE };
  const committing = verdict !== ErrorCode.NONE ? transactionErrorFor(verdict, known) : groups.commit({
    groupId,
    producerId,
    memberId: request.memberId,
    instanceId: request.groupInstanceId,
    generationId: request.generationId,
    retentionMs: -1,
    offsets,
  });
  admission?.release();
  const outcome = await committing;
  places.forEach((place, at) => place.errorCode = Array.isArray(outcome) ? outcome[at] : outcome);
  return { throttleTimeMs: 0, topics: answered };
}
