/**
 * Frames a client might send that nobody should: whole requests full of odd values, requests with damaged bytes, wrong
 * lengths and wrong versions, damaged record batches of every format and codec, and plain noise. All from a seed.
 */

import { encode } from "../../lib/protocol/codec.ts";
import { requestHeaderVersion, writeRequestHeader } from "../../lib/protocol/header.ts";
import { fetchRequest } from "../../lib/protocol/messages/fetch.ts";
import { listOffsetsRequest } from "../../lib/protocol/messages/list_offsets.ts";
import { produceRequest } from "../../lib/protocol/messages/produce.ts";
import type { AnyMessage, ValueOf } from "../../lib/protocol/schema.ts";
import { UnencodableValue, Writer } from "../../lib/protocol/writer.ts";
import { Compression, sealCrc } from "../../lib/records/batch.ts";
import { buildBatch } from "../../lib/records/record.ts";
import { joined } from "../support/raw_client.ts";
import { allMessages } from "../unit/protocol/support/all_messages.ts";
import { randomMessage } from "../unit/protocol/support/random_message.ts";
import type { Seeded } from "../unit/protocol/support/seeded.ts";
import { type JavaBatch, javaBatch } from "../unit/records/golden.ts";

/** The topic that requests about records name, and that no other names: it must not be deleted on the way. */
export const FUZZED_TOPIC = "fuzzed";

const oldBatches: readonly JavaBatch[] = ["v0 none", "v0 gzip", "v0 snappy", "v1 none", "v1 gzip", "v1 lz4"];
const interesting = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff];

/** Frames that follow from one seed. */
export class FuzzFrames {
  readonly #requests: readonly AnyMessage[];

  /** Requests are those of `apiKeys`; `topicId` is that of {@link FUZZED_TOPIC}. */
  constructor(
    private readonly random: Seeded,
    private readonly topicId: string,
    apiKeys: readonly number[],
  ) {
    this.#requests = allMessages.filter(({ type, apiKey }) => type === "request" && apiKeys.includes(apiKey));
  }

  /** The next bytes to send: mostly one frame with its length. */
  next(): Uint8Array {
    const { random } = this;
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2:
        return withLength(this.#anyRequest());
      case 3:
      case 4:
      case 5:
        return withLength(this.#damaged(this.#anyRequest()));
      case 6:
        return this.#damaged(withLength(this.#anyRequest()));
      case 7:
      case 8:
        return withLength(this.#recordsRequest());
      case 9:
        return withLength(this.#damaged(this.#recordsRequest()));
      case 10:
        return withLength(this.#renamed(this.#anyRequest()));
      default:
        return random.bytes(1 + random.below(200));
    }
  }

  /** A request that decodes, of any API and version. */
  #anyRequest(): Uint8Array {
    const request = this.random.pick(this.#requests);
    const version = this.#versionOf(request);
    return this.#frame(request, version, randomMessage(request, version, this.random));
  }

  /** A request about records of the topic that exists. */
  #recordsRequest(): Uint8Array {
    const { random } = this;
    const request = random.pick<AnyMessage>([produceRequest, produceRequest, fetchRequest, listOffsetsRequest]);
    const version = this.#versionOf(request);
    const value = randomMessage(request, version, random);
    if (request === produceRequest) {
      const produce = value as ValueOf<typeof produceRequest>;
      produce.acks = random.pick([-1, -1, 1, 0]);
      produce.timeoutMs = 1000;
      produce.topicData = [0, 1].map(() => ({
        name: FUZZED_TOPIC,
        topicId: this.topicId,
        partitionData: [0, 1].map((index) => ({ index, records: this.#records(version) })),
      }));
    } else if (request === fetchRequest) {
      const fetch = value as ValueOf<typeof fetchRequest>;
      fetch.maxWaitMs = random.below(20);
      fetch.maxBytes = random.pick([0, 1, 100_000, 0x7fffffff, -1]);
      for (const topic of fetch.topics) {
        topic.topic = FUZZED_TOPIC;
        topic.topicId = this.topicId;
        for (const partition of topic.partitions) {
          Object.assign(partition, this.#place(), { partition: random.below(3) });
        }
      }
    } else {
      for (const topic of (value as ValueOf<typeof listOffsetsRequest>).topics) topic.name = FUZZED_TOPIC;
    }
    return this.#frame(request, version, value);
  }

  #place() {
    const { random } = this;
    return {
      fetchOffset: random.pick([0, 1, random.below(1000), Number.MAX_SAFE_INTEGER, -1]),
      currentLeaderEpoch: random.pick([-1, 0, 1, 0x7fffffff]),
      partitionMaxBytes: random.pick([0, 1, 100_000, 0x7fffffff, -1]),
    };
  }

  /** Record bytes of the format that the version carries, as often as not damaged, some with a right CRC again. */
  #records(version: number): Uint8Array {
    const { random } = this;
    if (version < 3) {
      const old = javaBatch(random.pick(oldBatches));
      return random.oneIn(2) ? old : this.#damaged(old);
    }
    const batch = buildBatch({
      compression: random.pick(Object.values(Compression)),
      timestamp: random.pick([1_700_000_000_000, 0, -1, Number.MAX_SAFE_INTEGER]),
      producerId: random.pick([-1, -1, 1, 1000]),
      producerEpoch: random.pick([-1, 0, 5]),
      baseSequence: random.pick([-1, 0, 1, 0x7fffffff]),
      isTransactional: random.oneIn(8),
      isControl: random.oneIn(8),
      records: Array.from({ length: random.below(6) }, () => ({
        key: random.pick([null, "", "key"]),
        value: random.pick([null, "", "x".repeat(random.below(2000))]),
      })),
    });
    if (random.oneIn(3)) return batch;
    const damaged = this.#damaged(batch);
    if (damaged.length >= 61 && random.oneIn(2)) {
      new DataView(damaged.buffer).setInt32(8, damaged.length - 12);
      sealCrc(damaged);
    }
    return damaged;
  }

  /** A frame with another API, version, or both, than its body has. */
  #renamed(frame: Uint8Array): Uint8Array {
    const { random } = this;
    const view = new DataView(frame.buffer, frame.byteOffset);
    if (random.oneIn(2)) view.setInt16(0, random.pick([random.below(100), -1, 0x7fff]));
    view.setInt16(2, random.pick([random.below(20), -1, 0x7fff]));
    return frame;
  }

  /** A copy with some bytes changed, cut out, put in, repeated, or cut off. */
  #damaged(bytes: Uint8Array): Uint8Array {
    const { random } = this;
    let damaged: Uint8Array = bytes.slice();
    for (let count = 1 + random.below(4); count > 0 && damaged.length > 0; count--) {
      const at = random.below(damaged.length);
      switch (random.below(6)) {
        case 0:
          damaged[at] ^= 1 << random.below(8);
          break;
        case 1:
          damaged[at] = random.pick(interesting);
          break;
        case 2:
          damaged.fill(random.pick(interesting), at, at + random.pick([2, 4, 8]));
          break;
        case 3:
          damaged = joined([damaged.subarray(0, at), damaged.subarray(at + 1 + random.below(8))]);
          break;
        case 4:
          damaged = joined([damaged.subarray(0, at), random.bytes(1 + random.below(16)), damaged.subarray(at)]);
          break;
        default:
          damaged = random.oneIn(2) ? damaged.slice(0, at) : joined([damaged, damaged.subarray(at)]);
      }
    }
    return damaged;
  }

  #versionOf({ minVersion, maxVersion }: AnyMessage): number {
    return minVersion + this.random.below(maxVersion - minVersion + 1);
  }

  #frame(request: AnyMessage, version: number, value: unknown): Uint8Array {
    const { random } = this;
    const writer = new Writer();
    const header = {
      apiKey: request.apiKey,
      apiVersion: version,
      correlationId: random.below(0x7fffffff),
      clientId: random.pick([null, "", "fuzz", "ф".repeat(100)]),
    };
    writeRequestHeader(writer, header, requestHeaderVersion(request, version));
    try {
      encode(request, version, value, writer);
    } catch (error) {
      if (!(error instanceof UnencodableValue)) throw error;
    }
    return joined(writer.finish());
  }
}

function withLength(frame: Uint8Array): Uint8Array {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setInt32(0, frame.length);
  return joined([length, frame]);
}
