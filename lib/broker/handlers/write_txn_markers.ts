/**
 * WriteTxnMarkers (0–2): writes the markers of ended transactions into partitions that this broker leads, for the
 * coordinators of other brokers, and for administrators who abort a transaction that nobody ends.
 */

import { writeTxnMarkersRequest, writeTxnMarkersResponse } from "../../protocol/messages/write_txn_markers.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import { writeMarker } from "../transaction_markers.ts";

type Request = ValueOf<typeof writeTxnMarkersRequest>;
type Response = InputOf<typeof writeTxnMarkersResponse>;
type Serving = Pick<Broker, "partitions" | "clock" | "tenure">;

/** Serves WriteTxnMarkers. */
export function writeTxnMarkersHandler(broker: Serving): Handler<Request, Response> {
  return {
    request: writeTxnMarkersRequest,
    response: writeTxnMarkersResponse,
    async handle({ markers }) {
      return { markers: await Promise.all(markers.map((marker) => write(broker, marker))) };
    },
  };
}

async function write(broker: Serving, asked: Request["markers"][number]): Promise<Response["markers"][number]> {
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
      errorCode: await writeMarker(broker, { topic: name, partition: partitionIndex }, marker, false),
    }))),
  })));
  return { producerId, topics };
}
