/** What a heartbeat may not say. */

import assert from "node:assert/strict";
import { ErrorCode } from "../../../lib/errors.ts";
import { type ConsumerHeartbeat, heartbeatProblem } from "../../../lib/groups/consumer_heartbeat.ts";
import { NO_PARTITIONS, PartitionsBuilder } from "../../../lib/groups/topic_partitions.ts";
import { SILENT } from "../../support/consumer_group_world.ts";

const JOINING = { ...SILENT, memberId: "a", rebalanceTimeoutMs: 1000, topicNames: ["t"], owned: NO_PARTITIONS };
const offered = ["uniform", "range"];

function problemOf(beat: ConsumerHeartbeat, needsMemberId = true): ErrorCode | undefined {
  const problem = heartbeatProblem(beat, { needsMemberId, offered });
  assert.ok(problem === null || problem.errorMessage !== "");
  return problem?.errorCode;
}

Deno.test("heartbeats of every kind may be right", () => {
  const right: ConsumerHeartbeat[] = [
    JOINING,
    { ...JOINING, topicNames: null, regex: "a.*" },
    { ...JOINING, topicNames: null, regex: "" },
    { ...JOINING, topicNames: [], instanceId: "i", rackId: "r", assignor: "range" },
    { ...SILENT, memberId: "a", memberEpoch: 7 },
    { ...SILENT, memberId: "a", memberEpoch: -1 },
    { ...SILENT, memberId: "a", memberEpoch: -2, instanceId: "i" },
  ];
  for (const beat of right) assert.equal(problemOf(beat), undefined, JSON.stringify(beat));
  assert.equal(problemOf({ ...JOINING, memberId: "" }, false), undefined);
});

Deno.test("who joins says everything, and has nothing", () => {
  const has = new PartitionsBuilder().add("t", 0).build();
  const lacks = [{ rebalanceTimeoutMs: -1 }, { owned: null }, { owned: has }, { topicNames: null }, { memberId: "" }];
  for (const lack of lacks) {
    assert.equal(problemOf({ ...JOINING, ...lack }), ErrorCode.INVALID_REQUEST, JSON.stringify(lack));
  }
});

Deno.test("epochs below all meanings, empty names and leaving without an instance are refused", () => {
  const wrong = [
    { memberEpoch: -3 },
    { memberEpoch: -2 },
    { instanceId: "" },
    { rackId: "" },
    { memberId: "", memberEpoch: 1 },
    { memberId: "", memberEpoch: -1 },
  ];
  for (const one of wrong) {
    assert.equal(problemOf({ ...JOINING, ...one }, false), ErrorCode.INVALID_REQUEST, JSON.stringify(one));
  }
});

Deno.test("an assignor that is not offered and a pattern that is none have errors of their own", () => {
  assert.equal(problemOf({ ...JOINING, assignor: "sticky" }), ErrorCode.UNSUPPORTED_ASSIGNOR);
  assert.equal(problemOf({ ...JOINING, regex: "(a" }), ErrorCode.INVALID_REGULAR_EXPRESSION);
  const later = { ...SILENT, memberId: "a", memberEpoch: 3, regex: "a**" };
  assert.equal(problemOf(later), ErrorCode.INVALID_REGULAR_EXPRESSION);
});
