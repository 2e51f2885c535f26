/**
 * How the end of a transaction reaches the places that took part: a marker in the log of a partition, the offsets of the
 * groups of a shard. Places that other brokers keep are reached by WriteTxnMarkers, one request a broker.
 *
 * Ending is repeatable: where a producer has no open transaction and its epoch has been here, the marker is in the log
 * already, and none is added.
 */

import { ErrorCode } from "../errors.ts";
import { writeTxnMarkersRequest, writeTxnMarkersResponse } from "../protocol/messages/write_txn_markers.ts";
import { buildEndTransactionMarker, type EndTransactionMarker } from "../records/control.ts";
import type { PartitionLog } from "../storage/log.ts";
import type { TopicPartition } from "../transactions/transaction.ts";
import type { Broker } from "./broker.ts";
import { GROUP_SHARDS } from "./coordinator_shards.ts";

/** What ending needs where it happens. */
export type EndingBroker = Pick<Broker, "partitions" | "topics" | "groups" | "guards" | "clock" | "tenure">;

const WRITE_MARKERS_VERSION = 1;

/** Ends a transaction in places wherever they are. Resolves with one code a place: NONE when it is durable. */
export async function endPlaces(
  broker: EndingBroker & Pick<Broker, "cluster" | "links" | "nodeId">,
  places: readonly TopicPartition[],
  marker: EndTransactionMarker,
): Promise<ErrorCode[]> {
  const codes: ErrorCode[] = places.map(() => ErrorCode.LEADER_NOT_AVAILABLE);
  const elsewhere = new Map<number, number[]>();
  const ending: Promise<void>[] = [];
  places.forEach((place, at) => {
    const nodeId = keeperOf(broker, place);
    if (nodeId === broker.nodeId) {
      ending.push(endHere(broker, place, marker).then((code) => void (codes[at] = code)));
    } else if (nodeId !== null) {
      const there = elsewhere.get(nodeId);
      if (there === undefined) elsewhere.set(nodeId, [at]);
      else there.push(at);
    }
  });
  for (const [nodeId, indexes] of elsewhere) {
    const asked = indexes.map((at) => places[at]);
    ending.push(
      endThere(broker, nodeId, asked, marker).then((found) => indexes.forEach((at, i) => codes[at] = found[i])),
    );
  }
  await Promise.all(ending);
  return codes.map((code, at) => isOver(broker, places[at], code) ? ErrorCode.NONE : code);
}

/** Ends a transaction in a place that this broker keeps. Resolves with NONE when that is durable. */
export async function endHere(
  broker: EndingBroker,
  place: TopicPartition,
  marker: EndTransactionMarker,
): Promise<ErrorCode> {
  if (place.topic !== GROUP_SHARDS) return await writeMarker(broker, place, marker);
  broker.guards.trip(place, marker.producerId);
  return await broker.groups.endTransaction(place.partition, marker.producerId, marker.result === "commit");
}

function keeperOf({ cluster }: Pick<Broker, "cluster">, { topic, partition }: TopicPartition): number | null {
  if (topic === GROUP_SHARDS) return cluster.coordinatorOf(GROUP_SHARDS, partition);
  return cluster.placeOf(topic, partition)?.nodeId ?? null;
}

/** Whether nothing is left to do in a place, although it gave this code. */
function isOver({ topics }: EndingBroker, { topic, partition }: TopicPartition, code: ErrorCode): boolean {
  // A later epoch of the producer has been there: that ends what an earlier one began.
  if (code === ErrorCode.INVALID_PRODUCER_EPOCH) return true;
  return code !== ErrorCode.NONE && topic !== GROUP_SHARDS && partition >= (topics.get(topic)?.partitionCount ?? 0);
}

async function writeMarker(
  { partitions, topics, guards, clock, tenure }: EndingBroker,
  place: TopicPartition,
  marker: EndTransactionMarker,
): Promise<ErrorCode> {
  const partition = partitions.get(place.topic, place.partition);
  if (partition === undefined) {
    const isKnown = place.partition >= 0 && place.partition < (topics.get(place.topic)?.partitionCount ?? 0);
    return isKnown ? ErrorCode.NOT_LEADER_OR_FOLLOWER : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  }
  const log = await partition.log();
  if (typeof log === "number") return log;
  let durable: Promise<ErrorCode>;
  if (isEnded(log, marker)) {
    durable = log.flush();
  } else {
    const nowMs = clock.wallMs();
    const batch = buildEndTransactionMarker(marker, nowMs);
    const outcome = log.append(batch, nowMs);
    if (outcome.kind === "refused") return outcome.errorCode;
    partition.appendedBytes += batch.length;
    durable = log.durable(outcome.ticket);
  }
  guards.trip(place, marker.producerId);
  const errorCode = await durable;
  if (errorCode !== ErrorCode.NONE) return errorCode;
  return tenure.isValid() ? ErrorCode.NONE : ErrorCode.NOT_LEADER_OR_FOLLOWER;
}

function isEnded(log: PartitionLog, { producerId, producerEpoch }: EndTransactionMarker): boolean {
  const producer = log.producer(producerId);
  return producer !== undefined && producer.transactionFirstOffset === -1 && producer.coordinatorEpoch >= 0 &&
    producer.producerEpoch === producerEpoch;
}

async function endThere(
  { links }: Pick<Broker, "links">,
  nodeId: number,
  places: readonly TopicPartition[],
  { producerId, producerEpoch, coordinatorEpoch, result }: EndTransactionMarker,
): Promise<ErrorCode[]> {
  const topics = new Map<string, number[]>();
  for (const { topic, partition } of places) topics.set(topic, [...topics.get(topic) ?? [], partition]);
  const reply = await links.call(nodeId, writeTxnMarkersRequest, writeTxnMarkersResponse, WRITE_MARKERS_VERSION, {
    markers: [{
      producerId,
      producerEpoch,
      coordinatorEpoch,
      transactionResult: result === "commit",
      topics: Array.from(topics, ([name, partitionIndexes]) => ({ name, partitionIndexes })),
    }],
  });
  return places.map(({ topic, partition }) => {
    const found = reply?.markers[0]?.topics.find(({ name }) => name === topic)?.partitions
      .find(({ partitionIndex }) => partitionIndex === partition);
    return (found?.errorCode ?? ErrorCode.NETWORK_EXCEPTION) as ErrorCode;
  });
}
