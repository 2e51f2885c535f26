/**
 * WriteTxnMarkers (0–2): ends transactions in places that this broker keeps, for the coordinators of other brokers, and
 * for administrators who abort a transaction that nobody ends.
 */

import { writeTxnMarkersRequest, writeTxnMarkersResponse } from "../../protocol/messages/write_txn_markers.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Handler } from "../handler.ts";
import { endHere, type EndingBroker } from "../transaction_markers.ts";

type Request = ValueOf<typeof writeTxnMarkersRequest>;
type Response = InputOf<typeof writeTxnMarkersResponse>;

/** Serves WriteTxnMarkers. */
export function writeTxnMarkersHandler(broker: EndingBroker): Handler<Request, Response> {
  return {
    request: writeTxnMarkersRequest,
    response: writeTxnMarkersResponse,
    async handle({ markers }) {
      return { markers: await Promise.all(markers.map((marker) => write(broker, marker))) };
    },
  };
}

async function write(broker: EndingBroker, asked: Request["markers"][number]): Promise<Response["markers"][number]> {
  const { producerId, producerEpoch, transactionResult, coordinatorEpoch } = asked;
  const marker = {
    result: transactionResult ? "commit" as const : "abort" as const,
    producerId,
    producerEpoch,
    coordinatorEpoch,
  };
  const topics = await Promise.all(asked.topics.map(async ({ name, partitionIndexes }) => ({
    name,
    partitions: await Promise.all(partitionIndexes.map(async (partitionIndex) => ({
      partitionIndex,
      errorCode: await endHere(broker, { topic: name, partition: partitionIndex }, marker),
    }))),
  })));
  return { producerId, topics };
}
