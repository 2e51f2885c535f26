/**
 * Settings of Kafka that change nothing here. Those that a configuration may well name are accepted: checked, kept and
 * shown, with the reason why they have no effect. Those whose effect someone would miss are refused. Whole families of
 * settings for things that kaas does not have are known by their beginning only ({@link missingFeatureOf}).
 */

import {
  atLeast,
  boolean,
  int,
  list,
  long,
  named,
  NO_LIMIT_INT,
  NO_LIMIT_LONG,
  oneOf,
  optionalInt,
  optionalList,
  optionalString,
  type SettingSpec,
  short,
  someOf,
  string,
} from "./config_definitions_setting.ts";

const accepted = { effect: "accepted" } as const;
const dynamic = { effect: "accepted", update: "cluster-wide" } as const;
const refused = { effect: "refused" } as const;

const oneLoop = "No effect: one event loop serves everything, there are no thread pools to size.";
const oneCopy = "No effect: partitions are on the shared volume and are not copied between brokers.";
const noStateTopics =
  "No effect: group and transaction state is kept in files of the data folder, not in internal topics.";
const noParking = "No effect: a waiting request is forgotten when it ends, nothing is purged.";
const noQuorum = "No effect: the controller is elected by a lease, there is no quorum to configure.";
const systemSizes = "No effect: the operating system sizes socket buffers.";
const noClasses = "kaas loads no Java classes.";
const ownMetrics = "No effect: kaas exposes its own metrics.";
const noLinger = "No effect: what queues while a write is on its way shares the next one.";
const noGroupSettings = "No effect: groups have no settings of their own that this could bound.";

/** Broker settings without effect, by name. */
export const unusedBrokerSettings = named({
  "add.partitions.to.txn.retry.backoff.max.ms": int(100, atLeast(0), noStateTopics, accepted),
  "add.partitions.to.txn.retry.backoff.ms": int(20, atLeast(1), noStateTopics, accepted),
  "alter.config.policy.class.name": refusedClass(),
  "auto.leader.rebalance.enable": boolean(
    true,
    "No effect: the controller spreads leaders when brokers come and go.",
    accepted,
  ),
  "background.threads": int(10, atLeast(1), oneLoop, dynamic),
  "client.quota.callback.class": refusedClass(),
  "controller.listener.names": list([], null, noQuorum, accepted),
  "controller.quorum.bootstrap.servers": list([], null, noQuorum, accepted),
  "controller.quorum.voters": list([], null, noQuorum, accepted),
  "controller.socket.timeout.ms": int(30000, null, noQuorum, accepted),
  "create.topic.policy.class.name": refusedClass(),
  "delete.records.purgatory.purge.interval.requests": int(1, null, noParking, accepted),
  "early.start.listeners": optionalList(null, noQuorum, accepted),
  "fetch.purgatory.purge.interval.requests": int(1000, null, noParking, accepted),
  "follower.replication.throttled.rate": long(NO_LIMIT_LONG, atLeast(0), oneCopy, dynamic),
  "group.consumer.max.assignment.interval.ms": int(15000, atLeast(0), noGroupSettings, accepted),
  "group.consumer.min.assignment.interval.ms": int(0, atLeast(0), noGroupSettings, accepted),
  "group.coordinator.append.linger.ms": int(-1, atLeast(-1), noLinger, accepted),
  "group.coordinator.background.threads": int(2, atLeast(1), oneLoop, accepted),
  "group.coordinator.cached.buffer.max.bytes": int(1048588, atLeast(524288), noStateTopics, dynamic),
  "group.coordinator.threads": int(4, atLeast(1), oneLoop, accepted),
  "initial.broker.registration.timeout.ms": int(60000, null, noQuorum, accepted),
  "inter.broker.listener.name": optionalString(
    null,
    "No effect: brokers find each other in the data folder.",
    accepted,
  ),
  "kafka.metrics.polling.interval.secs": int(10, atLeast(1), ownMetrics, accepted),
  "kafka.metrics.reporters": list([], null, ownMetrics, accepted),
  "leader.imbalance.check.interval.seconds": long(
    300,
    atLeast(1),
    "No effect: the controller spreads leaders when brokers come and go.",
    accepted,
  ),
  "leader.replication.throttled.rate": long(NO_LIMIT_LONG, atLeast(0), oneCopy, dynamic),
  "log.cleaner.threads": int(1, atLeast(0), oneLoop, dynamic),
  "log.dir.failure.timeout.ms": long(
    30000,
    atLeast(1),
    "No effect: a failed folder takes only its own partitions down.",
    accepted,
  ),
  "log.flush.offset.checkpoint.interval.ms": int(
    60000,
    atLeast(0),
    "No effect: the recovery checkpoint is written with each sync that moves it far.",
    accepted,
  ),
  "log.flush.start.offset.checkpoint.interval.ms": int(
    60000,
    atLeast(0),
    "No effect: a moved log start is durable before it is answered.",
    accepted,
  ),
  "max.connection.creation.rate": int(NO_LIMIT_INT, atLeast(0), "No effect: max.connections is the limit.", dynamic),
  "metric.reporters": list([], null, ownMetrics, dynamic),
  "metrics.num.samples": int(2, atLeast(1), ownMetrics, accepted),
  "metrics.recording.level": string("INFO", oneOf("INFO", "DEBUG", "TRACE"), ownMetrics, accepted),
  "metrics.sample.window.ms": long(30000, atLeast(1), ownMetrics, accepted),
  "num.io.threads": int(8, atLeast(1), oneLoop, dynamic),
  "num.network.threads": int(3, atLeast(1), oneLoop, dynamic),
  "num.recovery.threads.per.data.dir": int(2, atLeast(1), oneLoop, dynamic),
  "num.replica.alter.log.dirs.threads": optionalInt(null, oneLoop, accepted),
  "num.replica.fetchers": int(1, atLeast(1), oneCopy, dynamic),
  "offsets.load.buffer.size": int(5242880, atLeast(1), noStateTopics, accepted),
  "offsets.topic.compression.codec": int(0, null, noStateTopics, accepted),
  "offsets.topic.num.partitions": int(50, atLeast(1), noStateTopics, accepted),
  "offsets.topic.replication.factor": short(3, atLeast(1), noStateTopics, accepted),
  "offsets.topic.segment.bytes": int(104857600, atLeast(1), noStateTopics, accepted),
  "process.roles": list(
    ["broker", "controller"],
    someOf("broker", "controller"),
    "No effect: the subcommand (kaas broker, kaas controller) is the role.",
    accepted,
  ),
  "producer.purgatory.purge.interval.requests": int(1000, null, noParking, accepted),
  "queued.max.request.bytes": long(
    -1,
    null,
    "No effect: queued.max.requests and socket.request.max.bytes bound what a connection may have in memory.",
    accepted,
  ),
  "remote.log.storage.system.enable": boolean(false, "kaas has no tiered storage: all data is on the volume.", refused),
  "replica.alter.log.dirs.io.max.bytes.per.second": long(NO_LIMIT_LONG, atLeast(0), oneCopy, dynamic),
  "replica.fetch.backoff.ms": int(1000, atLeast(0), oneCopy, accepted),
  "replica.fetch.max.bytes": int(1048576, atLeast(0), oneCopy, accepted),
  "replica.fetch.min.bytes": int(1, null, oneCopy, accepted),
  "replica.fetch.response.max.bytes": int(10485760, atLeast(0), oneCopy, accepted),
  "replica.fetch.wait.max.ms": int(500, null, oneCopy, accepted),
  "replica.high.watermark.checkpoint.interval.ms": long(5000, null, oneCopy, accepted),
  "replica.lag.time.max.ms": long(30000, null, oneCopy, accepted),
  "replica.selector.class": refusedClass(),
  "replica.socket.receive.buffer.bytes": int(65536, null, oneCopy, accepted),
  "replica.socket.timeout.ms": int(30000, null, oneCopy, accepted),
  "replication.quota.window.num": int(11, atLeast(1), oneCopy, accepted),
  "replication.quota.window.size.seconds": int(1, atLeast(1), oneCopy, accepted),
  "socket.connection.setup.timeout.max.ms": long(30000, null, noQuorum, accepted),
  "socket.connection.setup.timeout.ms": long(10000, null, noQuorum, accepted),
  "socket.receive.buffer.bytes": int(102400, null, systemSizes, accepted),
  "socket.send.buffer.bytes": int(102400, null, systemSizes, accepted),
  "transaction.partition.verification.enable": boolean(
    true,
    "No effect: that a partition belongs to the transaction is always verified.",
    dynamic,
  ),
  "transaction.state.log.load.buffer.size": int(5242880, atLeast(1), noStateTopics, accepted),
  "transaction.state.log.min.isr": int(2, atLeast(1), noStateTopics, accepted),
  "transaction.state.log.num.partitions": int(50, atLeast(1), noStateTopics, accepted),
  "transaction.state.log.replication.factor": short(3, atLeast(1), noStateTopics, accepted),
  "transaction.state.log.segment.bytes": int(104857600, atLeast(1), noStateTopics, accepted),
  "transaction.two.phase.commit.enable": boolean(
    false,
    "Transactions that are prepared elsewhere are not served.",
    refused,
  ),
  "unclean.leader.election.interval.ms": long(300000, atLeast(1), oneCopy, accepted),
});

function refusedClass(): SettingSpec<string | null> {
  return { ...optionalString(null, noClasses, refused), type: "class", importance: "low" };
}

const families: readonly (readonly [prefix: string, feature: string])[] = [
  ["remote.", "tiered storage"],
  ["group.share.", "share groups"],
  ["share.", "share groups"],
  ["group.streams.", "streams groups"],
  ["controller.", "a KRaft quorum"],
  ["metadata.", "a KRaft metadata log"],
  ["zookeeper.", "ZooKeeper"],
  ["delegation.token.", "delegation tokens"],
  ["ssl.", "TLS settings of this name"],
  ["sasl.", "SASL settings of this name"],
  ["authorizer.", "pluggable authorizers"],
  ["config.providers", "configuration providers"],
];

/** What kaas lacks, if a setting that is in no table belongs to a family of Kafka settings for it; else `null`. */
export function missingFeatureOf(name: string): string | null {
  return families.find(([prefix]) => name.startsWith(prefix))?.[1] ?? null;
}
