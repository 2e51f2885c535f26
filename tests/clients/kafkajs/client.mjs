// Drives kafkajs. Commands come as JSON lines, as described in tests/support/client_process.ts.
// Arguments: the folder whose node_modules holds the client, and the bootstrap address.
//
// kafkajs reads by group only. A consumer without a group, as `consume` and `offset` want it, is made of the same
// library's cluster and broker, one storey below its public door: its own requests, decoders and codecs.

import { createRequire } from "node:module";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { decode, encode, generated, serve } from "../node/driver.mjs";

const [folder, bootstrap] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const {
  CompressionCodecs,
  CompressionTypes,
  Kafka,
  logLevel,
  PartitionAssigners,
} = require("kafkajs");
const Cluster = require("kafkajs/src/cluster");
const { createLogger } = require("kafkajs/src/loggers");
const silent = () => () => {};
const lz4 = require("lz4-napi");

CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (bytes) => lz4.decompressFrame(bytes),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder) => Promise.resolve(zstdCompressSync(encoder.buffer)),
  decompress: (bytes) => Promise.resolve(zstdDecompressSync(bytes)),
});
const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};

const kafka = new Kafka({
  clientId: "kafkajs",
  brokers: bootstrap.split(","),
  logCreator: silent,
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 60 },
});

async function produce(request, emit) {
  const producer = kafka.producer({
    idempotent: request.idempotent ?? false,
    maxInFlightRequests: request.idempotent ? 1 : undefined,
    createPartitioner: () => ({ message }) => message.partition ?? 0,
  });
  await producer.connect();
  try {
    const records = request.generate ? generated(request.generate) : request.records;
    const acked = [];
    // One send is one batch a partition: many small ones stand for what other clients' batching does.
    const batchRecords = request.generate ? 200 : records.length;
    for (let start = 0; start < records.length; start += batchRecords) {
      const batch = records.slice(start, start + batchRecords);
      const answers = await producer.send({
        topic: request.topic,
        acks: request.acks ?? -1,
        timeout: request.timeoutMs,
        compression: codecs[request.compression ?? "none"],
        messages: batch.map((record) => ({
          partition: record.partition ?? 0,
          key: decode(record.key),
          value: decode(record.value),
          timestamp: record.timestamp == null ? undefined : String(record.timestamp),
          headers: headersOf(record.headers ?? []),
        })),
      });
      acked.push(...offsetsOf(batch, answers));
      emit("progress", { acked: acked.length });
    }
    return { acked };
  } finally {
    await producer.disconnect();
  }
}

/** kafkajs tells the first offset of each partition of a send; records of one partition follow one another. */
function offsetsOf(batch, answers) {
  const next = new Map(
    (answers ?? []).filter((answer) => answer.baseOffset !== undefined)
      .map((answer) => [answer.partition, Number(answer.baseOffset)]),
  );
  return batch.map((record) => {
    const partition = record.partition ?? 0;
    if (!next.has(partition) || next.get(partition) < 0) return [partition, -1];
    const offset = next.get(partition);
    next.set(partition, offset + 1);
    return [partition, offset];
  });
}

/** Repeated keys become an array, which kafkajs writes as that many headers. */
function headersOf(list) {
  const headers = {};
  for (const [name, value] of list) {
    const bytes = decode(value);
    if (!(name in headers)) headers[name] = bytes;
    else headers[name] = [headers[name], bytes].flat();
  }
  return headers;
}

/** Runs `use` with the leader of the partition. */
async function withLeader(request, use) {
  const cluster = new Cluster({
    logger: createLogger({ level: logLevel.NOTHING, logCreator: silent }),
    socketFactory: require("kafkajs/src/network/socketFactory")(),
    brokers: bootstrap.split(","),
    clientId: "kafkajs",
    connectionTimeout: 5000,
    requestTimeout: 90_000,
    enforceRequestTimeout: true,
    metadataMaxAge: 300_000,
    allowAutoTopicCreation: false,
    isolationLevel: 0,
  });
  await cluster.connect();
  try {
    await cluster.addTargetTopic(request.topic);
    const leaders = cluster.findLeaderForPartitions(request.topic, [
      request.partition ?? 0,
    ]);
    const [nodeId] = Object.keys(leaders);
    return await use(
      await cluster.findBroker({ nodeId: Number(nodeId) }),
      cluster,
    );
  } finally {
    await cluster.disconnect();
  }
}

async function listOffset(broker, request, at) {
  const timestamp = at === "earliest" ? -2 : at === "latest" ? -1 : at;
  const { responses } = await broker.listOffsets({
    replicaId: -1,
    isolationLevel: 0,
    topics: [{
      topic: request.topic,
      partitions: [{ partition: request.partition ?? 0, timestamp }],
    }],
  });
  const found = responses[0].partitions[0];
  const offset = Number(found.offset);
  const known = typeof at === "number" && offset >= 0;
  return {
    offset: offset < 0 ? null : offset,
    timestamp: known ? Number(found.timestamp) : null,
  };
}

function offset(request) {
  return withLeader(
    request,
    (broker) => listOffset(broker, request, request.at),
  );
}

function consume(request, emit) {
  return withLeader(request, async (broker) => {
    const from = request.from;
    let next = typeof from === "number" ? from : (await listOffset(
      broker,
      request,
      typeof from === "object" ? from.timestamp : from,
    )).offset;
    emit("positioned", { offset: next });
    const deadline = Date.now() + (request.timeoutMs ?? 30_000);
    const count = request.count ?? Infinity;
    const records = [];
    while (records.length < count && Date.now() < deadline) {
      const { responses } = await broker.fetch({
        replicaId: -1,
        isolationLevel: 0,
        maxWaitTime: request.maxWaitMs ?? 500,
        minBytes: request.minBytes ?? 1,
        maxBytes: request.maxBytes ?? 10_485_760,
        rackId: "",
        topics: [{
          topic: request.topic,
          partitions: [{
            partition: request.partition ?? 0,
            fetchOffset: next,
            maxBytes: request.maxBytes ?? 1_048_576,
          }],
        }],
      });
      for (const message of responses[0].partitions[0].messages) {
        // A batch comes whole, also where the reader wanted to start in its middle.
        if (Number(message.offset) < next || message.isControlRecord) continue;
        next = Number(message.offset) + 1;
        records.push(request.keysOnly ? brief(message) : full(message));
        if (request.stream) emit("record", { offset: Number(message.offset) });
      }
    }
    return { records, position: next };
  });
}

function brief(message) {
  return [Number(message.offset), message.key.toString()];
}

function full(message) {
  return {
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: encode(message.key),
    value: encode(message.value),
    headers: Object.entries(message.headers ?? {}).flatMap(([name, value]) =>
      Array.isArray(value) ? value.map((one) => [name, encode(one)]) : [[name, encode(value)]]
    ),
  };
}

async function administer(request) {
  const admin = kafka.admin({ retry: { retries: 2 } });
  await admin.connect();
  try {
    switch (request.op) {
      case "createTopic": {
        const created = await admin.createTopics({
          topics: [{
            topic: request.topic,
            numPartitions: request.partitions ?? 1,
            replicationFactor: 1,
            configEntries: Object.entries(request.configs ?? {}).map((
              [name, value],
            ) => ({ name, value })),
          }],
        });
        // That a topic exists is no error to this client, but an answer.
        if (!created) {
          throw Object.assign(new Error("the topic exists"), { code: 36 });
        }
        return {};
      }
      case "deleteTopic":
        await admin.deleteTopics({ topics: [request.topic] });
        return {};
      case "listTopics":
        return { topics: (await admin.listTopics()).sort() };
      case "describeTopic": {
        const { topics } = await admin.fetchTopicMetadata({
          topics: [request.topic],
        });
        return { partitions: topics[0].partitions.length };
      }
      case "topicConfig": {
        const { resources } = await admin.describeConfigs({
          includeSynonyms: false,
          resources: [{ type: 2, name: request.topic }],
        });
        const entry = resources[0].configEntries.find((one) => one.configName === request.name);
        return { value: entry.configValue };
      }
      default:
        throw new Error(`no command is named ${request.op}`);
    }
  } finally {
    await admin.disconnect();
  }
}

const running = new Map();

async function member(request, emit) {
  const consumer = kafka.consumer({
    groupId: request.groupId,
    sessionTimeout: request.sessionTimeoutMs ?? 10_000,
    heartbeatInterval: request.heartbeatMs ?? 500,
    rebalanceTimeout: request.rebalanceTimeoutMs ?? 30_000,
    metadataMaxAge: request.metadataMaxAgeMs ?? 2_000,
    maxWaitTimeInMs: 100,
    partitionAssigners: [PartitionAssigners.roundRobin],
    retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 60 },
  });
  let owned = [];
  const change = (partitions) => {
    if (owned.length > 0) emit("revoked", { partitions: owned });
    owned = partitions;
  };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    change(
      Object.entries(payload.memberAssignment)
        .flatMap(([topic, partitions]) => partitions.map((partition) => [topic, partition])),
    );
    emit("assigned", { partitions: owned });
  });
  consumer.on(consumer.events.REBALANCING, () => change([]));
  consumer.on(
    consumer.events.CRASH,
    ({ payload }) => emit("warning", { message: String(payload.error) }),
  );
  await consumer.connect();
  const topics = request.pattern ? [new RegExp(request.pattern)] : request.topics;
  await consumer.subscribe({ topics, fromBeginning: true });
  const stopped = new Promise((resolve) => running.set(request.id, resolve));
  await consumer.run({
    autoCommit: request.commit === "auto",
    eachBatchAutoResolve: true,
    eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
      emit("records", {
        records: batch.messages.map((
          message,
        ) => [batch.topic, batch.partition, ...brief(message)]),
      });
      resolveOffset(batch.lastOffset());
      await heartbeat();
      if ((request.commit ?? "each") !== "each") return;
      const offset = String(Number(batch.lastOffset()) + 1);
      await consumer.commitOffsets([{
        topic: batch.topic,
        partition: batch.partition,
        offset,
      }]);
      emit("committed");
    },
  });
  await stopped;
  await consumer.disconnect();
  change([]);
  return {};
}

function transactionalProducer(request) {
  return kafka.producer({
    transactionalId: request.transactionalId,
    transactionTimeout: request.transactionTimeoutMs ?? 60_000,
    idempotent: true,
    maxInFlightRequests: 1,
    createPartitioner: () => ({ message }) => message.partition ?? 0,
  });
}

async function transact(request, emit) {
  const producer = transactionalProducer(request);
  const stopped = new Promise((resolve) => running.set(request.id, resolve));
  await producer.connect();
  try {
    for (
      const { topic, records, generate, hold, end } of request.transactions
    ) {
      const transaction = await producer.transaction();
      const messages = (generate ? generated(generate) : records).map((
        record,
      ) => ({
        partition: record.partition ?? 0,
        key: decode(record.key),
        value: decode(record.value),
      }));
      await transaction.send({ topic, messages });
      if (hold) {
        emit("held");
        await stopped;
      }
      if (end === "abort") await transaction.abort();
      else await transaction.commit();
      emit("ended");
    }
    return {};
  } finally {
    await producer.disconnect();
  }
}

async function copy(request, emit) {
  let producer = transactionalProducer(request);
  const consumer = kafka.consumer({
    groupId: request.groupId,
    sessionTimeout: request.sessionTimeoutMs ?? 10_000,
    heartbeatInterval: 500,
    maxWaitTimeInMs: 100,
    readUncommitted: false,
    // A member that a killed broker has cut off would otherwise take as long to come back as a rebalance may.
    rebalanceTimeout: 10_000,
    retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 60, restartOnFailure: () => Promise.resolve(true) },
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => emit("warning", { message: `crash: ${payload.error}` }));
  await producer.connect();
  await consumer.connect();
  await consumer.subscribe({ topics: [request.topic], fromBeginning: true });
  const stopped = new Promise((resolve) => running.set(request.id, resolve));
  let copied = 0;
  let transactions = 0;
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async (
      { batch, resolveOffset, heartbeat, isRunning, isStale },
    ) => {
      const size = request.batch ?? 100;
      for (
        let start = 0;
        start < batch.messages.length && isRunning() && !isStale();
        start += size
      ) {
        const part = batch.messages.slice(start, start + size);
        const transaction = await producer.transaction();
        try {
          await transaction.send({
            topic: request.output,
            messages: part.map(({ key, value }) => ({
              partition: batch.partition,
              key,
              value,
            })),
          });
          const offset = String(Number(part.at(-1).offset) + 1);
          const partitions = [{ partition: batch.partition, offset }];
          const { groupId, topic } = request;
          await transaction.sendOffsets({
            consumerGroupId: groupId,
            topics: [{ topic, partitions }],
          });
          if (request.abortEvery && ++transactions % request.abortEvery === 0) {
            await transaction.abort();
            emit("aborted");
            start -= size;
            continue;
          }
          await transaction.commit();
        } catch (error) {
          emit("warning", { message: String(error) });
          // This client cannot go on with a producer whose transaction it could not end.
          await producer.disconnect().catch(() => {});
          producer = transactionalProducer(request);
          await producer.connect();
          throw error;
        }
        resolveOffset(part.at(-1).offset);
        copied += part.length;
        emit("progress", { acked: copied });
        await heartbeat();
      }
    },
  });
  await stopped;
  await consumer.disconnect();
  await producer.disconnect();
  return { copied };
}

async function committed(request) {
  const admin = kafka.admin({ retry: { retries: 5 } });
  await admin.connect();
  const { topic, groupId } = request;
  const partition = request.partition ?? 0;
  try {
    if (request.commitOffset != null) {
      await admin.setOffsets({
        groupId,
        topic,
        partitions: [{ partition, offset: String(request.commitOffset) }],
      });
    }
    const [{ partitions }] = await admin.fetchOffsets({
      groupId,
      topics: [topic],
    });
    const found = partitions.find((one) => one.partition === partition);
    const offset = Number(found?.offset ?? -1);
    return offset < 0 ? { offset: null, metadata: null } : { offset, metadata: found.metadata ?? "" };
  } finally {
    await admin.disconnect();
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
    case "transact":
      return transact(request, emit);
    case "copy":
      return copy(request, emit);
    case "stop":
      running.get(request.target)();
      return {};
    case "committed":
      return committed(request);
    default:
      return administer(request);
  }
}

/** The broker's code, wherever in the chain of causes it is. */
function codeOf(error) {
  for (
    let cause = error;
    cause;
    cause = cause.cause ?? cause.originalError ?? cause.errors?.[0]
  ) {
    if (typeof cause.code === "number") return cause.code;
  }
  return null;
}

serve(run, codeOf);
