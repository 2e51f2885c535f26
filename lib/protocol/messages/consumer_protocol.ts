/**
 * What members of a classic consumer group put into the opaque bytes of JoinGroup and SyncGroup.
 *
 *     version int16, then the message in that version
 *
 * v1 owned partitions (KIP-429) · v2 generation (KIP-792) · v3 rack (KIP-881). A later version only adds to the end, so
 * what is above the known ones is read as the highest known one, and bytes behind it are let be. Elements are plain
 * (never flexible).
 */

import { decodeFront, encode, MalformedFrame } from "../codec.ts";
import { array, bytes, type InputOf, int32, type Message, message, string, struct, type ValueOf } from "../schema.ts";
import { Writer } from "../writer.ts";

const topicPartitions = () => array(struct({ topic: string(), partitions: array(int32()) }));

export const consumerProtocolSubscription = message(
  { name: "ConsumerProtocolSubscription", apiKey: -1, type: "data", versions: "0-3", flexible: "none" },
  {
    topics: array(string()),
    userData: bytes().nullable().default(null),
    ownedPartitions: topicPartitions().since(1),
    generationId: int32().since(2).default(-1),
    rackId: string().since(3).nullable(3).default(null),
  },
);

export const consumerProtocolAssignment = message(
  { name: "ConsumerProtocolAssignment", apiKey: -1, type: "data", versions: "0-3", flexible: "none" },
  {
    assignedPartitions: topicPartitions(),
    userData: bytes().nullable().default(null),
  },
);

export type Subscription = ValueOf<typeof consumerProtocolSubscription>;
export type Assignment = ValueOf<typeof consumerProtocolAssignment>;

/**
 * Reads a member's subscription, version included.
 *
 * @throws MalformedFrame when the bytes are no subscription.
 */
export function decodeSubscription(bytes: Uint8Array): Subscription {
  return decodeVersioned(consumerProtocolSubscription, bytes);
}

/**
 * Reads a member's assignment, version included.
 *
 * @throws MalformedFrame when the bytes are no assignment.
 */
export function decodeAssignment(bytes: Uint8Array): Assignment {
  return decodeVersioned(consumerProtocolAssignment, bytes);
}

/** Writes a subscription in `version`, version included. */
export function encodeSubscription(value: InputOf<typeof consumerProtocolSubscription>, version = 3): Uint8Array {
  return encodeVersioned(consumerProtocolSubscription, version, value);
}

/** Writes an assignment in `version`, version included. */
export function encodeAssignment(value: InputOf<typeof consumerProtocolAssignment>, version = 3): Uint8Array {
  return encodeVersioned(consumerProtocolAssignment, version, value);
}

function decodeVersioned<Value, Input>(message: Message<Value, Input>, bytes: Uint8Array): Value {
  if (bytes.length < 2) throw new MalformedFrame(`${message.name}: the bytes end inside its version`, bytes.length);
  const version = new DataView(bytes.buffer, bytes.byteOffset, 2).getInt16(0);
  if (version < 0) throw new MalformedFrame(`${message.name}: there is no version ${version}`, 0);
  return decodeFront(message, Math.min(version, message.maxVersion), bytes, 2);
}

function encodeVersioned<Value, Input>(message: Message<Value, Input>, version: number, value: Input): Uint8Array {
  const writer = new Writer(256);
  writer.int16(version);
  encode(message, version, value, writer);
  return writer.finish()[0].slice();
}
