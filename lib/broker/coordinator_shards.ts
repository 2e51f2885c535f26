/**
 * How the state of coordinators is split into shards, each of which one broker keeps. The numbers are facts of the data
 * on the volume: another one would look for a group's state where it is not.
 */

/** The kind of shard that keeps consumer groups, as the assignment names it. No topic can have this name. */
export const GROUP_SHARDS = "__cluster/groups";

/** The kind of shard that keeps transactions. */
export const TRANSACTION_SHARDS = "__cluster/transactions";

const GROUP_SHARD_COUNT = 6;
const TRANSACTION_SHARD_COUNT = 6;

/** The kinds of shards with how many there are. */
export const coordinatorKinds = [
  { name: GROUP_SHARDS, partitionCount: GROUP_SHARD_COUNT },
  { name: TRANSACTION_SHARDS, partitionCount: TRANSACTION_SHARD_COUNT },
] as const;

/** A group's shard as a place in transactions, which end there as they do in partitions. */
export function groupPlaceOf(groupId: string): { readonly topic: string; readonly partition: number } {
  return { topic: GROUP_SHARDS, partition: groupShardOf(groupId) };
}

/** The shard of a transactional id. */
export function transactionShardOf(transactionalId: string): number {
  return hash(transactionalId) % TRANSACTION_SHARD_COUNT;
}

/** The shard of a group. */
export function groupShardOf(groupId: string): number {
  return hash(groupId) % GROUP_SHARD_COUNT;
}

/** FNV-1a over the UTF-16 code units, two bytes each. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    value = Math.imul(value ^ (unit & 0xff), 0x01000193);
    value = Math.imul(value ^ (unit >> 8), 0x01000193);
  }
  return value >>> 0;
}
