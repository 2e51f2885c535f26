import assert from "node:assert/strict";
import {
  type AlterationScope,
  alterIncrementally,
  AlterOperation,
  type ConfigChange,
  type OwnValues,
  replaceAllValues,
} from "../../../lib/broker/config_alteration.ts";
import { topicSetting, topicSettings } from "../../../lib/broker/config_definitions_topic.ts";
import { ErrorCode } from "../../../lib/errors.ts";

function scope(own: OwnValues): AlterationScope {
  return {
    find: (name) => topicSetting(name) ?? { errorCode: ErrorCode.INVALID_CONFIG, message: name },
    effective: (name) => own.get(name) ?? topicSettings[name as keyof typeof topicSettings].defaultValue,
  };
}

function alter(own: OwnValues, ...changes: ConfigChange[]) {
  return alterIncrementally(own, changes, scope(own));
}

const { SET, DELETE, APPEND, SUBTRACT } = AlterOperation;

Deno.test("SET and DELETE change only what they name", () => {
  const own = new Map([["retention.ms", 5], ["segment.ms", 6]]);
  const next = alter(
    own,
    { name: "retention.ms", operation: SET, value: "7" },
    { name: "segment.ms", operation: DELETE, value: null },
  );
  assert.deepEqual(next, new Map([["retention.ms", 7]]));
  assert.deepEqual(own.get("retention.ms"), 5);
});

Deno.test("APPEND adds to the list in effect what is not there yet, SUBTRACT takes away", () => {
  const appended = alter(new Map(), { name: "cleanup.policy", operation: APPEND, value: "compact,delete" });
  assert.deepEqual(appended, new Map([["cleanup.policy", ["delete", "compact"]]]));
  const both = new Map([["cleanup.policy", ["delete", "compact"]]]);
  const subtracted = alter(both, { name: "cleanup.policy", operation: SUBTRACT, value: "delete" });
  assert.deepEqual(subtracted, new Map([["cleanup.policy", ["compact"]]]));
});

Deno.test("wrong changes are refused with Kafka's error code", () => {
  const table: [ConfigChange[], number][] = [
    [[{ name: "no.such", operation: SET, value: "1" }], ErrorCode.INVALID_CONFIG],
    [[{ name: "no.such", operation: DELETE, value: null }], ErrorCode.INVALID_CONFIG],
    [[{ name: "retention.ms", operation: SET, value: "x" }], ErrorCode.INVALID_CONFIG],
    [[{ name: "retention.ms", operation: SET, value: null }], ErrorCode.INVALID_REQUEST],
    [[{ name: "retention.ms", operation: APPEND, value: "1" }], ErrorCode.INVALID_CONFIG],
    [[{ name: "retention.ms", operation: SUBTRACT, value: "1" }], ErrorCode.INVALID_CONFIG],
    [[{ name: "retention.ms", operation: 9, value: "1" }], ErrorCode.INVALID_REQUEST],
    [
      [{ name: "retention.ms", operation: SET, value: "1" }, { name: "retention.ms", operation: DELETE, value: null }],
      ErrorCode.INVALID_REQUEST,
    ],
  ];
  for (const [changes, code] of table) {
    const outcome = alter(new Map(), ...changes);
    assert.equal("errorCode" in outcome && outcome.errorCode, code, JSON.stringify(changes));
  }
});

Deno.test("replaceAllValues() forgets what is not named", () => {
  const own = new Map([["retention.ms", 5], ["segment.ms", 6]]);
  assert.deepEqual(replaceAllValues([{ name: "segment.ms", value: "8" }], scope(own)), new Map([["segment.ms", 8]]));
});

Deno.test("no list grows beyond what the wire can carry", () => {
  const name = "leader.replication.throttled.replicas";
  const entries = (from: number) => Array.from({ length: 3000 }, (_, index) => `${from + index}:0`);
  const outcome = alter(new Map([[name, entries(0)]]), { name, operation: APPEND, value: entries(10000).join(",") });
  assert.equal("errorCode" in outcome && outcome.errorCode, ErrorCode.INVALID_CONFIG);
});

Deno.test("a refusal quotes no more than fits into a reply", () => {
  const outcome = alter(new Map(), { name: "retention.ms", operation: SET, value: "x".repeat(30000) });
  assert.ok("message" in outcome && typeof outcome.message === "string" && outcome.message.length < 2000);
});
