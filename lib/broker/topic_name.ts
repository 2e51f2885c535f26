/**
 * Which names a topic may have. Kafka's rules: 1 to 249 of the characters a–z, A–Z, 0–9, `.`, `_` and `-`, but not `.`
 * or `..`; two topics whose names differ only in `.` against `_` cannot both exist, because their metrics would collide.
 * Names of folders that kaas keeps beside the topics are refused too.
 */

/** Longest topic name, in characters (all of one byte). */
export const MAX_TOPIC_NAME_LENGTH = 249;

/** Folders of the cluster, of deleted topics and of topics in the making. */
const RESERVED = /^(__cluster|\.deleted|\.new-.*)$/;
const INTERNAL: ReadonlySet<string> = new Set(["__consumer_offsets", "__transaction_state", "__share_group_state"]);

/** Why this cannot be a topic's name, or `null` if it can. */
export function topicNameProblem(name: string): string | null {
  if (name === "") return "the topic name is empty";
  if (name === "." || name === "..") return `"${name}" is not a topic name`;
  if (name.length > MAX_TOPIC_NAME_LENGTH) {
    return `the topic name has ${name.length} characters, at most ${MAX_TOPIC_NAME_LENGTH} are allowed`;
  }
  if (!/^[a-zA-Z0-9._-]+$/.test(name)) {
    return `the topic name ${JSON.stringify(name)} has characters other than a-z, A-Z, 0-9, ".", "_" and "-"`;
  }
  if (RESERVED.test(name)) return `the name ${name} is reserved`;
  return null;
}

/** Names with the same key collide. */
export function collisionKey(name: string): string {
  return name.replaceAll(".", "_");
}

/** Whether Kafka hides topics of this name from subscriptions by pattern. */
export function isInternalTopic(name: string): boolean {
  return INTERNAL.has(name);
}
