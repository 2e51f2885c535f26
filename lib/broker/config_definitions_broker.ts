/**
 * The broker settings that kaas is run by: network, topics, groups, transactions. Defaults of topic settings
 * (`log.*` and their like) are in `config_definitions_log.ts`, settings of Kafka that have no meaning here in
 * `config_definitions_unused.ts`.
 *
 * `update` is Kafka's: `"per-broker"` and `"cluster-wide"` settings can be altered while brokers run.
 */

import {
  atLeast,
  boolean,
  int,
  list,
  long,
  matching,
  named,
  NO_LIMIT_INT,
  optionalInt,
  optionalList,
  optionalString,
  someOf,
  string,
} from "./config_definitions_setting.ts";

const high = { importance: "high" } as const;
const low = { importance: "low" } as const;
const dynamic = { update: "cluster-wide" } as const;

/** `NAME://HOST:PORT`; the host may be empty, a name, an IPv4 address or an IPv6 address in brackets. */
export const listenerPattern = /^([A-Za-z0-9_.-]+):\/\/(\[[0-9A-Fa-f:.%]+\]|[^[\]:/\s]*):(\d{1,5})$/;
const listenerForm = "a list of NAME://HOST:PORT";
const perIpForm = /^(\s*|\s*[^,:\s]+:\d+\s*(,\s*[^,:\s]+:\d+\s*)*)$/;

/** Broker settings with an effect, by name. */
export const servedBrokerSettings = named({
  "advertised.listeners": optionalList(
    matching(listenerPattern, listenerForm),
    "Addresses that clients are told to connect to, by listener name. Not set, clients are told the listeners themselves.",
    high,
  ),
  "auto.create.topics.enable": boolean(
    true,
    "Whether asking for the metadata of a topic that does not exist creates it, if the client allows that too.",
    high,
  ),
  "broker.id": int(-1, atLeast(-1), "Older name of node.id; -1 is not set.", high),
  "broker.rack": optionalString(
    null,
    "Where this broker runs; told to clients, which may prefer brokers of their own rack.",
  ),
  "broker.session.timeout.ms": int(
    10000,
    atLeast(100),
    "How long a broker may be silent before the controller gives its partitions to others. Kafka's default is 9000.",
  ),
  "broker.heartbeat.interval.ms": int(
    1000,
    atLeast(10),
    "Time between two heartbeats of a broker to the controller. Kafka's default is 2000.",
  ),
  "connections.max.idle.ms": long(
    600000,
    null,
    "A connection without a request for this long is closed; below 0 never.",
  ),
  "controlled.shutdown.enable": boolean(
    true,
    "Whether a stopping broker hands its partitions over one by one before it closes its connections.",
  ),
  "default.replication.factor": int(
    1,
    atLeast(1),
    "Kept and shown. A partition has one copy, on the shared volume, so new topics have one replica.",
    { effect: "accepted" },
  ),
  "delete.topic.enable": boolean(true, "Whether topics can be deleted.", high),
  "fetch.max.bytes": int(
    57671680,
    atLeast(1024),
    "Most bytes of records in one fetch response, whatever the client asks for.",
  ),
  "group.consumer.assignment.interval.ms": int(
    1000,
    atLeast(0),
    "Least time between two assignments of a consumer group of more than 200 members, but for changed subscriptions and " +
      "topics. Smaller groups are assigned anew at once.",
    dynamic,
  ),
  "group.consumer.assignors": list(
    ["uniform", "range"],
    someOf("uniform", "range"),
    "Server-side assignors that consumer groups can ask for; the first is the default.",
  ),
  "group.consumer.heartbeat.interval.ms": int(
    5000,
    atLeast(1),
    "How often members of a consumer group are told to send heartbeats.",
  ),
  "group.consumer.max.heartbeat.interval.ms": int(
    15000,
    atLeast(1),
    "Largest value that group.consumer.heartbeat.interval.ms counts as.",
  ),
  "group.consumer.max.session.timeout.ms": int(
    60000,
    atLeast(1),
    "Largest value that group.consumer.session.timeout.ms counts as.",
  ),
  "group.consumer.max.size": int(NO_LIMIT_INT, atLeast(1), "Most members of one consumer group."),
  "group.consumer.migration.policy": string(
    "bidirectional",
    {
      wanted: "one of disabled, downgrade, upgrade, bidirectional",
      accepts: (value) => ["disabled", "downgrade", "upgrade", "bidirectional"].includes(String(value).toLowerCase()),
    },
    "In which directions a group may change between the classic and the consumer protocol while it has members.",
  ),
  "group.consumer.min.heartbeat.interval.ms": int(
    5000,
    atLeast(1),
    "Smallest value that group.consumer.heartbeat.interval.ms counts as.",
  ),
  "group.consumer.min.session.timeout.ms": int(
    45000,
    atLeast(1),
    "Smallest value that group.consumer.session.timeout.ms counts as.",
  ),
  "group.consumer.session.timeout.ms": int(
    45000,
    atLeast(1),
    "A member of a consumer group that is silent for this long is removed from it.",
  ),
  "group.coordinator.rebalance.protocols": list(
    ["classic", "consumer"],
    someOf("consumer", "classic", "share", "streams"),
    "Group protocols that are served. share and streams groups are not.",
  ),
  "group.initial.rebalance.delay.ms": int(
    3000,
    atLeast(0),
    "How long the first member of an empty classic group waits for others before the group's first assignment.",
  ),
  "group.max.session.timeout.ms": int(
    1800000,
    atLeast(1),
    "Largest session timeout a member of a classic group may ask for.",
  ),
  "group.max.size": int(NO_LIMIT_INT, atLeast(1), "Most members of one classic group."),
  "group.min.session.timeout.ms": int(
    6000,
    atLeast(1),
    "Smallest session timeout a member of a classic group may ask for.",
  ),
  "listeners": list(
    ["PLAINTEXT://127.0.0.1:9092"],
    matching(listenerPattern, listenerForm),
    "Where the broker listens, by listener name. Alone on a machine it listens on the loopback address only.",
    high,
  ),
  "listener.security.protocol.map": string(
    "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    null,
    "Security protocol of each listener name, as NAME:PROTOCOL pairs.",
    low,
  ),
  "log.dir": list(
    ["data"],
    null,
    "Data folder, used if log.dirs is not set. The path is relative to where kaas was started.",
    high,
  ),
  "log.dirs": optionalList(null, "Data folders. Not set, log.dir is used.", high),
  "max.connections": int(
    NO_LIMIT_INT,
    atLeast(0),
    "Most connections of this broker at a time; further ones are closed as they arrive.",
    dynamic,
  ),
  "max.connections.per.ip": int(
    NO_LIMIT_INT,
    atLeast(0),
    "Most connections from one address at a time; further ones are closed as they arrive.",
    dynamic,
  ),
  "max.connections.per.ip.overrides": string(
    "",
    matching(perIpForm, "a list of HOST:COUNT"),
    "Exceptions from max.connections.per.ip, as HOST:COUNT pairs.",
    dynamic,
  ),
  "max.incremental.fetch.session.cache.slots": int(
    1000,
    atLeast(0),
    "Most incremental fetch sessions that are kept; 0 answers every fetch in full.",
  ),
  "max.request.partition.size.limit": int(
    2000,
    atLeast(1),
    "Most partitions in one answer to DescribeTopicPartitions; a cursor leads to the rest.",
  ),
  "node.id": optionalInt(
    atLeast(0),
    "Number of this broker, unique in the cluster. Not set, it is taken from the end of the host's name (name-0, name-1, …), " +
      "and a broker alone on a machine is number 0.",
    high,
  ),
  "num.partitions": int(1, atLeast(1), "Partitions of a new topic when none are asked for."),
  "offset.metadata.max.bytes": int(
    4096,
    atLeast(0),
    "Longest text, in bytes, that a consumer may commit with an offset.",
    high,
  ),
  "offsets.commit.timeout.ms": int(
    5000,
    atLeast(1),
    "How long an offset commit may take to become durable before it is answered with a timeout.",
    high,
  ),
  "offsets.retention.check.interval.ms": long(600000, atLeast(1), "Time between two looks for expired offsets.", high),
  "offsets.retention.minutes": int(
    10080,
    atLeast(1),
    "Committed offsets are dropped when their group has been empty for this many minutes.",
    high,
  ),
  "producer.id.expiration.check.interval.ms": int(
    600000,
    atLeast(1),
    "Time between two looks for expired producer ids. Here they are looked at whenever their state is used.",
    { ...low, effect: "accepted" },
  ),
  "producer.id.expiration.ms": int(
    86400000,
    atLeast(1),
    "A producer's sequence numbers are forgotten when it has written nothing for this long.",
    { ...low, ...dynamic },
  ),
  "queued.max.requests": int(
    500,
    atLeast(1),
    "Kafka's bound on waiting requests. Here a connection has at most 100 that are worked on; further ones wait in the network.",
    { ...high, effect: "accepted" },
  ),
  "request.timeout.ms": int(30000, atLeast(1), "How long one broker waits for another's answer.", high),
  "socket.listen.backlog.size": int(50, atLeast(1), "Connections that may wait to be accepted."),
  "socket.request.max.bytes": int(
    104857600,
    atLeast(1),
    "Largest request in bytes. A connection that announces a larger one is closed at once.",
    high,
  ),
  "transaction.abort.timed.out.transaction.cleanup.interval.ms": int(
    10000,
    atLeast(1),
    "Longest time between two looks for transactions that outlived their timeout and are to be aborted.",
    low,
  ),
  "transaction.max.timeout.ms": int(
    900000,
    atLeast(1),
    "Longest timeout that a transactional producer may ask for.",
    high,
  ),
  "transaction.remove.expired.transaction.cleanup.interval.ms": int(
    3600000,
    atLeast(1),
    "Time between two looks for transactional ids that expired.",
    low,
  ),
  "transactional.id.expiration.ms": int(
    604800000,
    atLeast(1),
    "A transactional id is forgotten when it has not been used for this long.",
    high,
  ),
});
