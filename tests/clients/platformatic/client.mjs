// Drives @platformatic/kafka. Commands come as JSON lines, as described in tests/support/client_process.ts.
// Arguments: the folder whose node_modules holds the client, and the bootstrap address.

import { createRequire } from "node:module";
import { decode, encode, generated, serve } from "../node/driver.mjs";

const [folder, bootstrap] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { Admin, Consumer, cooperativeStickyAssigner, Producer, roundRobinAssigner } = require("@platformatic/kafka");

const base = {
  clientId: "platformatic",
  bootstrapBrokers: [bootstrap],
  timeout: 90_000,
  retries: 60,
  retryDelay: 250,
  metadataMaxAge: 2_000,
};

async function produce(request, emit) {
  const producer = new Producer({
    ...base,
    idempotent: request.idempotent ?? false,
    timeout: request.timeoutMs ?? 60_000,
  });
  try {
    const records = request.generate ? generated(request.generate) : request.records;
    const acked = [];
    const batchRecords = request.generate ? 200 : records.length;
    for (let start = 0; start < records.length; start += batchRecords) {
      const batch = records.slice(start, start + batchRecords);
      const { offsets } = await producer.send({
        acks: request.acks ?? -1,
        compression: request.compression ?? "none",
        autocreateTopics: true,
        messages: batch.map((record) => messageOf(request.topic, record)),
      });
      acked.push(...offsetsOf(batch, offsets));
      emit("progress", { acked: acked.length });
    }
    return { acked };
  } finally {
    await producer.close();
  }
}

function messageOf(topic, record) {
  const message = { topic, partition: record.partition ?? 0, key: decode(record.key), value: decode(record.value) };
  if (record.timestamp != null) message.timestamp = BigInt(record.timestamp);
  // A map of buffers keeps repeated names apart.
  if (record.headers) {
    message.headers = new Map(record.headers.map(([name, value]) => [Buffer.from(name), decode(value)]));
  }
  return message;
}

/** The client tells the first offset of each partition of a send; records of one partition follow one another. */
function offsetsOf(batch, offsets) {
  const next = new Map((offsets ?? []).map(({ partition, offset }) => [partition, Number(offset)]));
  return batch.map((record) => {
    const partition = record.partition ?? 0;
    const offset = next.get(partition) ?? -1;
    if (offset >= 0) next.set(partition, offset + 1);
    return [partition, offset];
  });
}

/** A consumer that joins no group: it looks offsets up and fetches. */
async function withReader(request, use) {
  const consumer = new Consumer({ ...base, groupId: "no-group" });
  consumer.topics.track(request.topic);
  try {
    return await use(consumer);
  } finally {
    await consumer.close(true);
  }
}

async function listOffset(consumer, request, at) {
  const partition = request.partition ?? 0;
  const special = { latest: -1n, earliest: -2n, maxTimestamp: -3n };
  const found = await consumer.listOffsetsWithTimestamps({
    topics: [request.topic],
    partitions: { [request.topic]: [partition] },
    timestamp: special[at] ?? BigInt(at),
  });
  const { offset, timestamp } = found.get(request.topic).get(partition);
  return { offset: offset < 0n ? null : Number(offset), timestamp: timestamp < 0n ? null : Number(timestamp) };
}

function offset(request) {
  return withReader(request, (consumer) => listOffset(consumer, request, request.at));
}

function consume(request, emit) {
  return withReader(request, async (consumer) => {
    const { from } = request;
    const metadata = await consumer.metadata({ topics: [request.topic] });
    const topic = metadata.topics.get(request.topic);
    const partition = request.partition ?? 0;
    let next = typeof from === "number"
      ? from
      : (await listOffset(consumer, request, typeof from === "object" ? from.timestamp : from)).offset;
    emit("positioned", { offset: next });
    const deadline = Date.now() + (request.timeoutMs ?? 30_000);
    const count = request.count ?? Infinity;
    const records = [];
    while (records.length < count && Date.now() < deadline) {
      const { responses } = await consumer.fetch({
        node: topic.partitions[partition].leader,
        minBytes: request.minBytes ?? 1,
        maxBytes: request.maxBytes ?? 10_485_760,
        maxWaitTime: request.maxWaitMs ?? 500,
        topics: [{
          topicId: topic.id,
          partitions: [{
            partition,
            currentLeaderEpoch: -1,
            fetchOffset: BigInt(next),
            lastFetchedEpoch: -1,
            partitionMaxBytes: request.maxBytes ?? 1_048_576,
          }],
        }],
      });
      // A fetch session leaves out partitions in which nothing changed.
      for (const batch of responses.flatMap((answer) => answer.partitions).flatMap((answer) => answer.records ?? [])) {
        for (const record of batch.records) {
          const at = Number(batch.firstOffset) + record.offsetDelta;
          if (at < next) continue;
          next = at + 1;
          records.push(request.keysOnly ? [at, record.key.toString()] : full(at, batch, record));
          if (request.stream) emit("record", { offset: at });
        }
      }
    }
    return { records, position: next };
  });
}

function full(at, batch, record) {
  const appendTime = (batch.attributes & 8) !== 0;
  return {
    offset: at,
    timestamp: Number(appendTime ? batch.maxTimestamp : batch.firstTimestamp + record.timestampDelta),
    key: encode(record.key),
    value: encode(record.value),
    headers: record.headers.map(([name, value]) => [name.toString(), encode(value)]),
  };
}

async function administer(request) {
  const admin = new Admin({ ...base, retries: 2 });
  try {
    switch (request.op) {
      case "createTopic":
        await admin.createTopics({
          topics: [request.topic],
          partitions: request.partitions ?? 1,
          replicas: 1,
          configs: Object.entries(request.configs ?? {}).map(([name, value]) => ({ name, value })),
        });
        return {};
      case "deleteTopic":
        await admin.deleteTopics({ topics: [request.topic] });
        return {};
      case "listTopics":
        return { topics: (await admin.listTopics()).sort() };
      case "describeTopic": {
        const metadata = await admin.metadata({ topics: [request.topic], forceUpdate: true });
        const topic = metadata.topics.get(request.topic);
        return { partitions: topic.partitionsCount, topicId: topic.id };
      }
      case "topicConfig": {
        const [{ configs }] = await admin.describeConfigs({
          resources: [{ resourceType: 2, resourceName: request.topic, configurationKeys: [request.name] }],
        });
        return { value: configs.find((config) => config.name === request.name).value };
      }
      default:
        throw new Error(`no command is named ${request.op}`);
    }
  } finally {
    await admin.close();
  }
}

const running = new Map();

async function member(request, emit) {
  const classic = (request.protocol ?? "classic") === "classic";
  const consumer = new Consumer({
    ...base,
    clientId: request.clientId ?? "member",
    metadataMaxAge: request.metadataMaxAgeMs ?? 2_000,
    groupId: request.groupId,
    groupInstanceId: request.instanceId,
    rebalanceTimeout: request.rebalanceTimeoutMs ?? 30_000,
    ...(classic ? classicOptions(request) : consumerOptions(request)),
  });
  let owned = [];
  const take = (partitions) => {
    if (owned.length > 0) emit("revoked", { partitions: owned });
    owned = partitions;
    emit("assigned", { partitions: owned });
  };
  const look = () => {
    const now = (consumer.assignments ?? []).flatMap(({ topic, partitions }) => partitions.map((one) => [topic, one]));
    if (String(now) !== String(owned)) take(now);
  };
  consumer.on("consumer:group:join", look);
  // In the newer protocol no event tells a change, but each is confirmed by a heartbeat at once.
  if (!classic) { for (const moment of ["start", "end"]) consumer.on(`consumer:heartbeat:${moment}`, look); }
  const stream = await consumer.consume({
    topics: request.topics,
    mode: "committed",
    fallbackMode: "earliest",
    autocommit: request.commit === "auto",
    maxWaitTime: 100,
  });
  stream.on("error", (error) => emit("warning", { message: String(error.message) }));
  const stopped = new Promise((resolve) => running.set(request.id, resolve));
  const consumed = consumeStream(stream, request, emit);
  await stopped;
  await stream.close();
  await consumed;
  await consumer.close();
  if (owned.length > 0) emit("revoked", { partitions: owned });
  return {};
}

function classicOptions(request) {
  const cooperative = request.strategy === "cooperative-sticky";
  return {
    sessionTimeout: request.sessionTimeoutMs ?? 10_000,
    heartbeatInterval: request.heartbeatMs ?? 500,
    protocols: [{ name: cooperative ? "cooperative-sticky" : "roundrobin", version: 1 }],
    partitionAssigner: cooperative ? cooperativeStickyAssigner : roundRobinAssigner,
  };
}

function consumerOptions(request) {
  // The session's length is the broker's to set here; this only passes the client's check of its own options.
  return { groupProtocol: "consumer", groupRemoteAssignor: request.strategy, sessionTimeout: 10_000 };
}

async function consumeStream(stream, request, emit) {
  for await (const message of stream) {
    const { topic, partition, offset, key } = message;
    emit("records", { records: [[topic, partition, Number(offset), key.toString()]] });
    if ((request.commit ?? "each") !== "each") continue;
    try {
      await message.commit();
      emit("committed");
    } catch (error) {
      emit("warning", { message: String(error.message) });
    }
  }
}

async function committed(request) {
  const partition = request.partition ?? 0;
  const admin = new Admin({ ...base, retries: 5 });
  try {
    if (request.commitOffset != null) {
      await admin.alterConsumerGroupOffsets({
        groupId: request.groupId,
        topics: [{ name: request.topic, partitionOffsets: [{ partition, offset: BigInt(request.commitOffset) }] }],
      });
    }
    const [{ topics }] = await admin.listConsumerGroupOffsets({
      groups: [{ groupId: request.groupId, topics: [{ name: request.topic, partitionIndexes: [partition] }] }],
    });
    const found = topics[0]?.partitions[0];
    if (!found || found.committedOffset < 0n) return { offset: null, metadata: null };
    return { offset: Number(found.committedOffset), metadata: found.metadata ?? "" };
  } finally {
    await admin.close();
  }
}

function run(request, emit) {
  switch (request.op) {
    case "produce":
      return produce(request, emit);
    case "consume":
      return consume(request, emit);
    case "offset":
      return offset(request);
    case "member":
      return member(request, emit);
    case "stop":
      running.get(request.target)();
      return {};
    case "committed":
      return committed(request);
    default:
      return administer(request);
  }
}

/** The broker's code, wherever in the tree of errors it is; -1 is what the client makes of a single record's error. */
function codeOf(error) {
  if (typeof error?.apiCode === "number" && error.apiCode !== -1) return error.apiCode;
  for (const cause of [error?.cause, ...(error?.errors ?? [])]) {
    const code = cause ? codeOf(cause) : null;
    if (code !== null) return code;
  }
  return null;
}

serve(run, codeOf);
