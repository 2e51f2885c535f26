import assert from "node:assert/strict";
import type { Broker } from "../../../lib/broker/broker.ts";
import type { Place } from "../../../lib/broker/leadership.ts";
import type { RequestContext } from "../../../lib/broker/handler.ts";
import { absence, checkLeaderEpoch, currentLeader, nodeEndpoints } from "../../../lib/broker/leader_hint.ts";
import type { Partition, PartitionState } from "../../../lib/broker/partitions.ts";
import type { BrokerAddress } from "../../../lib/broker/topic_metadata.ts";
import { ErrorCode } from "../../../lib/errors.ts";

const addresses: BrokerAddress[] = [
  { nodeId: 1, host: "one", port: 9092, rack: "r1" },
  { nodeId: 2, host: "two", port: 9092, rack: null },
];

function brokerThatKnows(place: Place | null): Broker {
  return {
    nodeId: 1,
    cluster: { placeOf: () => place, addresses: (listener: string) => listener === "INSIDE" ? addresses : [] },
    topics: { get: (name: string) => name === "t" ? { partitionCount: 3 } : undefined },
  } as unknown as Broker;
}

const partition = (state: PartitionState) => ({ topic: "t", index: 0, state });
const on = (name: string) => ({ listener: { name } }) as RequestContext;
const hint = (leaderId: number) => ({ currentLeader: { leaderId, leaderEpoch: 5 } });

Deno.test("The leader that is told is the one that the assignment names", () => {
  const elsewhere = brokerThatKnows({ nodeId: 2, leaderEpoch: 5, movesTo: null, chosen: null });
  assert.deepEqual(currentLeader(elsewhere, partition("closed")), {
    leaderId: 2,
    leaderEpoch: 5,
  });
  const here = brokerThatKnows({ nodeId: 1, leaderEpoch: 5, movesTo: null, chosen: null });
  assert.deepEqual(currentLeader(here, partition("opening")), {
    leaderId: 1,
    leaderEpoch: 5,
  });
});

Deno.test("A broker that has closed a partition does not send clients back to itself", () => {
  const here = brokerThatKnows({ nodeId: 1, leaderEpoch: 5, movesTo: null, chosen: null });
  assert.deepEqual(currentLeader(here, partition("closed")), { leaderId: -1, leaderEpoch: -1 });
  assert.deepEqual(currentLeader(brokerThatKnows(null), partition("leading")), { leaderId: -1, leaderEpoch: -1 });
});

Deno.test("A partition that is led elsewhere is told from one that there is none of", () => {
  const broker = brokerThatKnows(null);
  for (const index of [0, 2]) assert.equal(absence(broker, "t", index), ErrorCode.NOT_LEADER_OR_FOLLOWER);
  for (const index of [-1, 3]) assert.equal(absence(broker, "t", index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  assert.equal(absence(broker, "other", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
});

Deno.test("A reply carries the address of each leader that it names once, on the listener that was asked", () => {
  const broker = brokerThatKnows(null);
  assert.deepEqual(nodeEndpoints(broker, on("INSIDE"), []), []);
  assert.deepEqual(nodeEndpoints(broker, on("INSIDE"), [hint(-1), hint(-1)]), []);
  assert.deepEqual(nodeEndpoints(broker, on("INSIDE"), [hint(2), hint(-1), hint(2)]), [addresses[1]]);
  assert.deepEqual(nodeEndpoints(broker, on("INSIDE"), [hint(2), hint(1), hint(9)]), addresses);
  assert.deepEqual(nodeEndpoints(broker, on("OUTSIDE"), [hint(2)]), []);
});

Deno.test("A client's leader epoch is behind, right or ahead; without one nothing is checked", () => {
  const led = { leaderEpoch: 5 } as Partition;
  const outcome = (epoch: number) => checkLeaderEpoch(led, epoch);
  assert.deepEqual([-1, 4, 5, 6].map(outcome), [
    ErrorCode.NONE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
  ]);
});
