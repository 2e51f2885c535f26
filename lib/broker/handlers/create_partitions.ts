/** CreatePartitions: raises the number of partitions of topics. */

import { ErrorCode } from "../../errors.ts";
import { createPartitionsRequest, createPartitionsResponse } from "../../protocol/messages/create_partitions.ts";
import type { InputOf, ValueOf } from "../../protocol/schema.ts";
import type { Broker } from "../broker.ts";
import type { Handler } from "../handler.ts";
import { isRefusal, type Refusal, refuse } from "../refusal.ts";
import { clusterFacts, timedOut, within } from "../topic_creation.ts";
import { planPartitions } from "../topic_plan.ts";

type CreatePartitionsRequest = ValueOf<typeof createPartitionsRequest>;
type CreatePartitionsResponse = InputOf<typeof createPartitionsResponse>;
type Wish = CreatePartitionsRequest["topics"][number];
type GrowingBroker = Pick<Broker, "clock" | "cluster" | "config" | "topics">;

export function createPartitionsHandler(
  broker: GrowingBroker,
): Handler<CreatePartitionsRequest, CreatePartitionsResponse> {
  return {
    request: createPartitionsRequest,
    response: createPartitionsResponse,
    async handle(request) {
      const wishes = new Map(request.topics.map((wish) => [wish.name, wish]));
      const repeated = new Set(request.topics.filter((wish) => wishes.get(wish.name) !== wish).map(({ name }) => name));
      const results = await Promise.all([...wishes.values()].map(async (wish) => {
        const refusal = repeated.has(wish.name)
          ? refuse(ErrorCode.INVALID_REQUEST, `topic ${wish.name} is named more than once`)
          : await grow(broker, wish, request);
        return {
          name: wish.name,
          errorCode: refusal === null ? ErrorCode.NONE : refusal.errorCode,
          errorMessage: refusal === null ? null : refusal.message,
        };
      }));
      return { throttleTimeMs: 0, results };
    },
  };
}

async function grow(
  broker: GrowingBroker,
  wish: Wish,
  { validateOnly, timeoutMs }: CreatePartitionsRequest,
): Promise<Refusal | null> {
  const topic = broker.topics.get(wish.name);
  if (topic === undefined) {
    return refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `topic ${wish.name} does not exist`);
  }
  const facts = clusterFacts(broker);
  if (validateOnly) {
    const plan = planPartitions(wish, topic, facts);
    return isRefusal(plan) ? plan : null;
  }
  const growth = broker.topics.addPartitions(topic, wish.count, (present) => planPartitions(wish, present, facts));
  const outcome = await within(broker.clock, timeoutMs, growth, timedOut);
  return isRefusal(outcome) ? outcome : null;
}
