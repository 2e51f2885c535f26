/**
 * Metadata: the brokers, and where the partitions of topics are.
 *
 * Version 0 asks for all topics by an empty list, later ones by null. From 4 on the client says whether topics may be
 * created by asking; from 8 on it may ask for authorized operations; 10 brings topic ids into replies, 12 into requests;
 * 13 has an error code of its own.
 */

import { ErrorCode } from "../../errors.ts";
import { metadataRequest, metadataResponse } from "../../protocol/messages/metadata.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import { ZERO_UUID } from "../../protocol/schema.ts";
import { ALL_CLUSTER_OPERATIONS, ALL_TOPIC_OPERATIONS, NOT_ASKED } from "../authorized_operations.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import { isRefusal, type Refusal, refuse } from "../refusal.ts";
import { getOrCreateTopic, within } from "../topic_creation.ts";
import { brokerAddresses, placeOf } from "../topic_metadata.ts";
import { topicNameProblem } from "../topic_name.ts";
import type { Topic } from "../topics.ts";

type MetadataRequest = ValueOf<typeof metadataRequest>;
type MetadataResponse = InputOf<typeof metadataResponse>;
type TopicMetadata = MetadataResponse["topics"][number];
type MetadataBroker = Pick<Broker, "clock" | "cluster" | "clusterId" | "config" | "nodeId" | "topics">;

/** How long a reply waits for topics that it creates; clients then ask again. */
const CREATION_PATIENCE_MS = 1000;

export function metadataHandler(broker: MetadataBroker): Handler<MetadataRequest, MetadataResponse> {
  return {
    request: metadataRequest,
    response: metadataResponse,
    // All topics may be much to build and to hold: a client that asks again and again without reading waits for itself.
    largeReplies: true,
    async handle(request, context) {
      const operations = request.includeTopicAuthorizedOperations ? ALL_TOPIC_OPERATIONS : NOT_ASKED;
      const topics = asksForAll(request, context.apiVersion)
        ? Array.from(broker.topics.all(), (topic) => known(broker, topic, operations))
        : await named(broker, request, operations);
      return {
        throttleTimeMs: 0,
        brokers: brokerAddresses(broker, context),
        clusterId: broker.clusterId,
        controllerId: broker.cluster.controllerId,
        topics,
        clusterAuthorizedOperations: request.includeClusterAuthorizedOperations ? ALL_CLUSTER_OPERATIONS : NOT_ASKED,
        errorCode: ErrorCode.NONE,
      };
    },
  };
}

function asksForAll({ topics }: MetadataRequest, apiVersion: number): boolean {
  return topics === null || (apiVersion === 0 && topics.length === 0);
}

/** One entry for each topic that is asked for, however often it is. */
function named(broker: MetadataBroker, request: MetadataRequest, operations: number): Promise<TopicMetadata[]> {
  const replies = new Map<string, TopicMetadata | Promise<TopicMetadata>>();
  const mayCreate = request.allowAutoTopicCreation && broker.config.get("auto.create.topics.enable");
  for (const { name, topicId } of request.topics ?? []) {
    const key = topicId === ZERO_UUID ? `name ${name}` : topicId;
    if (replies.has(key)) continue;
    if (topicId !== ZERO_UUID) {
      const topic = broker.topics.getById(topicId);
      replies.set(
        key,
        topic === undefined
          ? refused({ errorCode: ErrorCode.UNKNOWN_TOPIC_ID, name: null, topicId })
          : known(broker, topic, operations),
      );
    } else if (name === null) {
      replies.set(key, refused({ errorCode: ErrorCode.INVALID_REQUEST, name: null, topicId }));
    } else {
      replies.set(key, byName(broker, name, { mayCreate, operations }));
    }
  }
  return Promise.all(replies.values());
}

function byName(
  broker: MetadataBroker,
  name: string,
  { mayCreate, operations }: { readonly mayCreate: boolean; readonly operations: number },
): TopicMetadata | Promise<TopicMetadata> {
  const topic = broker.topics.get(name);
  if (topic !== undefined) return known(broker, topic, operations);
  if (topicNameProblem(name) !== null) {
    return refused({ errorCode: ErrorCode.INVALID_TOPIC_EXCEPTION, name, topicId: ZERO_UUID });
  }
  if (!mayCreate) return refused({ errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, topicId: ZERO_UUID });
  const late = refuse(ErrorCode.LEADER_NOT_AVAILABLE, "the topic is being created");
  return within<Topic | Refusal>(broker.clock, CREATION_PATIENCE_MS, getOrCreateTopic(broker, name), late).then(
    (outcome) => {
      if (!isRefusal(outcome)) return known(broker, outcome, operations);
      const errorCode = outcome.errorCode === ErrorCode.INVALID_TOPIC_EXCEPTION
        ? outcome.errorCode
        : ErrorCode.LEADER_NOT_AVAILABLE;
      return refused({ errorCode, name, topicId: ZERO_UUID });
    },
  );
}

function known(broker: MetadataBroker, topic: Topic, topicAuthorizedOperations: number): TopicMetadata {
  return {
    errorCode: ErrorCode.NONE,
    name: topic.name,
    topicId: topic.topicId,
    isInternal: topic.internal,
    partitions: Array.from({ length: topic.partitionCount }, (_, partitionIndex) => ({
      partitionIndex,
      ...placeOf(broker, topic, partitionIndex),
    })),
    topicAuthorizedOperations,
  };
}

function refused(
  { errorCode, name, topicId }: { errorCode: ErrorCode; name: string | null; topicId: string },
): TopicMetadata {
  return { errorCode, name, topicId, isInternal: false, partitions: [], topicAuthorizedOperations: NOT_ASKED };
}
