/**
 * Operations a client may do, as the bit sets that Metadata and describe responses carry (KIP-430): bit n stands for the
 * ACL operation of that number.
 */

/** The field's value when nobody asked for it. */
export const NOT_ASKED = -2147483648;

const Operation = {
  READ: 3,
  WRITE: 4,
  CREATE: 5,
  DELETE: 6,
  ALTER: 7,
  DESCRIBE: 8,
  CLUSTER_ACTION: 9,
  DESCRIBE_CONFIGS: 10,
  ALTER_CONFIGS: 11,
  IDEMPOTENT_WRITE: 12,
} as const;

type OperationName = keyof typeof Operation;

function bits(...names: OperationName[]): number {
  return names.reduce((set, name) => set | (1 << Operation[name]), 0);
}

/** Everything that can be done with a topic. */
export const ALL_TOPIC_OPERATIONS = bits(
  "READ",
  "WRITE",
  "CREATE",
  "DELETE",
  "ALTER",
  "DESCRIBE",
  "DESCRIBE_CONFIGS",
  "ALTER_CONFIGS",
);
/** Everything that can be done with the cluster. */
export const ALL_CLUSTER_OPERATIONS = bits(
  "CREATE",
  "ALTER",
  "DESCRIBE",
  "CLUSTER_ACTION",
  "DESCRIBE_CONFIGS",
  "ALTER_CONFIGS",
  "IDEMPOTENT_WRITE",
);
/** Everything that can be done with a group. */
export const ALL_GROUP_OPERATIONS = bits("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS");
