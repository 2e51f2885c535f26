/**
 * Creating topics as requests ask for it, and waiting for changes of topics no longer than a request wants to wait.
 */

import type { Clock } from "../clock.ts";
import { ErrorCode } from "../errors.ts";
import type { Broker } from "./broker.ts";
import { isRefusal, type Refusal, refuse } from "./refusal.ts";
import { type ClusterFacts, planTopic, type TopicWish } from "./topic_plan.ts";
import type { Topic } from "./topics.ts";

/** What the checks of new topics and partitions need to know of this cluster. */
export function clusterFacts(broker: Pick<Broker, "cluster" | "config" | "topics">): ClusterFacts {
  return {
    namesLike: (key) => broker.topics.namesLike(key),
    brokerIds: broker.cluster.nodeIds(),
    config: broker.config,
  };
}

/** Creates the topic or says why not. Resolves when it is durable and led. */
export function createTopic(
  broker: Pick<Broker, "cluster" | "config" | "topics">,
  wish: TopicWish,
): Promise<Topic | Refusal> {
  return broker.topics.create(wish.name, () => planTopic(wish, clusterFacts(broker)));
}

/** The topic of this name, created with the broker's defaults if there is none. */
export async function getOrCreateTopic(
  broker: Pick<Broker, "cluster" | "config" | "topics">,
  name: string,
): Promise<Topic | Refusal> {
  const wish = { name, numPartitions: -1, replicationFactor: -1, assignments: [], configs: [] };
  const created = await createTopic(broker, wish);
  if (isRefusal(created) && created.errorCode === ErrorCode.TOPIC_ALREADY_EXISTS) {
    return broker.topics.get(name) ?? refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `topic ${name} was deleted`);
  }
  return created;
}

/** What `change` comes to, or `late` if it takes longer than `timeoutMs`; the change then goes on all the same. */
export function within<T>(clock: Clock, timeoutMs: number, change: Promise<T>, late: T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.schedule(Math.max(0, timeoutMs), () => resolve(late));
    change.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** The refusal of a change that outlived its request's timeout. */
export const timedOut: Refusal = refuse(
  ErrorCode.REQUEST_TIMED_OUT,
  "the request timed out before the change was durable; it goes on",
);
