import assert from "node:assert/strict";
import { HandleBudget, type HandleOwner } from "../../../lib/storage/handle_budget.ts";

class Owner implements HandleOwner {
  used = false;
  busy = false;
  evictions = 0;
  evict(): boolean {
    if (this.busy) return false;
    this.evictions++;
    return true;
  }
}

Deno.test("HandleBudget closes those not used for longest when there are too many", () => {
  const budget = new HandleBudget(3);
  const owners = Array.from({ length: 5 }, () => new Owner());
  for (const owner of owners.slice(0, 3)) budget.opened(owner);
  for (const owner of owners) owner.used = false;
  owners[0].used = true;
  budget.opened(owners[3]);
  assert.deepEqual(owners.map((owner) => owner.evictions), [0, 1, 0, 0, 0]);
  budget.opened(owners[4]);
  assert.deepEqual(owners.map((owner) => owner.evictions), [0, 1, 1, 0, 0]);
  assert.equal(budget.open, 3);
});

Deno.test("HandleBudget keeps what is busy, and the newest, and ends its search", () => {
  const budget = new HandleBudget(2);
  const owners = Array.from({ length: 6 }, () => new Owner());
  for (const owner of owners) owner.busy = true;
  for (const owner of owners) budget.opened(owner);
  assert.equal(budget.open, 6);
  for (const owner of owners) owner.busy = false;
  const newest = new Owner();
  budget.opened(newest);
  assert.deepEqual([budget.open, newest.evictions], [2, 0]);
});

Deno.test("HandleBudget forgets what its owner closed", () => {
  const budget = new HandleBudget(1);
  const owner = new Owner();
  budget.opened(owner);
  budget.closed(owner);
  budget.opened(new Owner());
  assert.deepEqual([budget.open, owner.evictions], [1, 0]);
});
