import assert from "node:assert/strict";
import { assignAllTo, parseAssignment } from "../../../lib/cluster/assignment.ts";

const now = { wallMs: 1000, controllerEpoch: 3 };

Deno.test("assignAllTo gives every partition an epoch above the previous assignment's", () => {
  const first = assignAllTo("kaas-0", [{ topic: "t", partition: 0, epochOnDisk: -1 }], null, now);
  assert.equal(first.partitions[0].epoch, 0);
  const second = assignAllTo("kaas-0", [{ topic: "t", partition: 0, epochOnDisk: 0 }], first, now);
  assert.equal(second.partitions[0].epoch, 1);
  assert.equal(second.assignmentVersion, first.assignmentVersion + 1);
});

Deno.test("assignAllTo never gives an epoch at or below the one on disk when the assignment was lost", () => {
  const made = assignAllTo("kaas-0", [{ topic: "t", partition: 4, epochOnDisk: 41 }], null, now);
  assert.equal(made.partitions[0].epoch, 42);
});

Deno.test("assignAllTo drops partitions that are no longer on the volume and keeps unknown keys", () => {
  const previous = parseAssignment({
    controllerEpoch: 1,
    assignmentVersion: 6,
    generatedAt: "2026-12-01T03:11:20.339335371Z",
    controller: "kaas-0",
    brokers: [{ id: "kaas-0", health: "alive", lastSeen: "2026-12-01T03:11:20.339335371Z" }],
    partitions: [{ topic: "gone", partition: 0, broker: "kaas-0", epoch: 1, role: "leader" }],
    later: { version: 2 },
  });
  const made = assignAllTo("kaas-0", [], previous, now);
  assert.deepEqual(made.partitions, []);
  assert.deepEqual(made.later, { version: 2 });
});

Deno.test("parseAssignment refuses what is not an assignment", () => {
  assert.throws(() =>
    parseAssignment({ partitions: [{ topic: "t", partition: -1, broker: "x", epoch: 0, role: "" }] })
  );
});
