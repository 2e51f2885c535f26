/**
 * Which topics members consume: those they name, and those whose names match their pattern, as the cluster has them now.
 * Members that subscribe to the same share one list.
 */

import type { ConsumerFacts } from "./consumer_member.ts";
import { SubscriptionRegex } from "./subscription_regex.ts";
import type { TopicView } from "./topic_view.ts";

const NO_TOPICS: readonly string[] = [];

/** See the file's head. */
export class SubscribedTopics {
  readonly #topics: TopicView;
  #lists = new Map<string, readonly string[]>();
  #matches = new Map<string, readonly string[]>();
  #version = -1;

  constructor(topics: TopicView) {
    this.#topics = topics;
  }

  /** Whether topics have come, gone or grown since the lists were made; then they are forgotten. */
  renew(): boolean {
    if (this.#version === this.#topics.version) return false;
    this.#version = this.#topics.version;
    this.#lists = new Map();
    this.#matches = new Map();
    return true;
  }

  /** Names in order, without repetition; some may be of topics that do not exist. */
  of({ topicNames, regex }: Pick<ConsumerFacts, "topicNames" | "regex">): readonly string[] {
    if (regex === null && topicNames.length === 0) return NO_TOPICS;
    const key = `${regex === null ? "" : JSON.stringify(regex)}\n${topicNames.join("\n")}`;
    const known = this.#lists.get(key);
    if (known !== undefined) return known;
    const list = [...new Set(regex === null ? topicNames : [...topicNames, ...this.#matching(regex)])].sort();
    this.#lists.set(key, list);
    return list;
  }

  /** Keeps the lists that are in use, when there are many others. */
  forgetUnused(inUse: ReadonlySet<readonly string[]>): void {
    if (this.#lists.size <= 2 * inUse.size + 16) return;
    for (const [key, list] of this.#lists) if (!inUse.has(list)) this.#lists.delete(key);
    this.#matches = new Map();
  }

  /**
   * A number that is the same as long as these topics have the same ids and as many partitions (FNV-1a over both halves
   * of 53 bits).
   */
  fingerprint(lists: ReadonlySet<readonly string[]>): number {
    let [low, high] = [0x811c9dc5, 0x1b873593];
    for (const name of [...new Set([...lists].flat())].sort()) {
      const topic = this.#topics.byName(name);
      if (topic === undefined) continue;
      for (const char of `${name}:${topic.topicId}:${topic.partitionCount};`) {
        low = Math.imul(low ^ char.charCodeAt(0), 0x01000193);
        high = Math.imul(high ^ char.charCodeAt(0), 0x01000197);
      }
    }
    return (low >>> 0) + (high & 0x1f_ffff) * 2 ** 32;
  }

  #matching(regex: string): readonly string[] {
    const known = this.#matches.get(regex);
    if (known !== undefined) return known;
    const compiled = SubscriptionRegex.compile(regex);
    const names = "problem" in compiled ? [] : [...this.#topics.names()].filter((name) => compiled.matches(name));
    this.#matches.set(regex, names);
    return names;
  }
}
