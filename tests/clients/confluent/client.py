"""Drives confluent-kafka (librdkafka).

Reads one JSON command a line, runs each in a thread of its own and prints its events and its end. The commands are
described in tests/support/client_process.ts. The bootstrap address is the only argument.
"""

import base64
import json
import sys
import threading
import time

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
    OFFSET_BEGINNING,
    OFFSET_END,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

PROGRESS_EVERY = 200

bootstrap = sys.argv[1]
printing = threading.Lock()
stops = {}
making_admin = threading.Lock()
shared_admin = None


def emit(line):
    with printing:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def encode(value):
    return None if value is None else base64.b64encode(value).decode()


def decode(text):
    return None if text is None else base64.b64decode(text)


def base_config(request):
    # Reconnecting to a broker that was restarted must not take the client's usual ten seconds.
    config = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 500, "log_level": 2}
    if request.get("transactionalId"):
        # With its default a librdkafka whose only broker is gone forgets its coordinator and never finds it again.
        config["metadata.recovery.strategy"] = "none"
    config.update(request.get("config") or {})
    return config


def produce(request, events):
    config = base_config(request)
    config.update({
        "acks": request.get("acks", -1),
        "compression.type": request.get("compression", "none"),
        "linger.ms": request.get("lingerMs", 0),
        "batch.size": request.get("batchBytes", 16384),
        "message.max.bytes": request.get("maxRequestBytes", 1000000),
        "enable.idempotence": request.get("idempotent", False),
        "message.timeout.ms": request.get("timeoutMs", 60000),
        "queue.buffering.max.messages": 1000000,
    })
    producer = Producer(config)
    records = generated(request["generate"]) if "generate" in request else request["records"]
    acked = [None] * len(records)
    failures = []
    done = [0]

    def delivered(index):
        def callback(error, message):
            if error is not None:
                failures.append(KafkaException(error))
                return
            # With acks=0 nobody knows the offset.
            acked[index] = [message.partition(), -1 if message.offset() is None else message.offset()]
            done[0] += 1
            if done[0] % PROGRESS_EVERY == 0:
                events("progress", acked=done[0])
        return callback

    for index, record in enumerate(records):
        optional = {}
        if record.get("timestamp") is not None:
            optional["timestamp"] = record["timestamp"]
        if record.get("headers"):
            optional["headers"] = [(name, decode(value)) for name, value in record["headers"]]
        producer.produce(
            request["topic"],
            key=decode(record.get("key")),
            value=decode(record.get("value")),
            partition=record.get("partition", 0),
            on_delivery=delivered(index),
            **optional,
        )
        producer.poll(0)
    producer.flush()
    if failures:
        raise failures[0]
    return {"acked": acked}


def generated(spec):
    records = []
    for i in range(spec["count"]):
        key = f"{spec['prefix']}-{i}".encode()
        value = key.ljust(spec.get("valueBytes", 0), b".")
        records.append({"partition": i % spec.get("partitions", 1), "key": encode(key), "value": encode(value)})
    return records


def simple_consumer(request):
    config = base_config(request)
    config.update({
        # librdkafka wants a group name even for a consumer that joins none.
        "group.id": "no-group",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.min.bytes": request.get("minBytes", 1),
        "fetch.wait.max.ms": request.get("maxWaitMs", 500),
        "max.partition.fetch.bytes": request.get("maxBytes", 1048576),
        "socket.timeout.ms": 90000,
    })
    return Consumer(config)


def consume(request, events):
    consumer = simple_consumer(request)
    try:
        start = request.get("from")
        if start == "earliest":
            offset = OFFSET_BEGINNING
        elif start == "latest":
            offset = consumer.get_watermark_offsets(partition_of(request), timeout=30)[1]
        elif isinstance(start, dict):
            offset = look_up(consumer, request, start["timestamp"])["offset"]
        else:
            offset = start
        position = partition_of(request)
        position.offset = offset
        consumer.assign([position])
        events("positioned", offset=offset)
        deadline = time.monotonic() + request.get("timeoutMs", 30000) / 1000
        count = request.get("count", sys.maxsize)
        records = []
        while len(records) < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            records.append(brief(message) if request.get("keysOnly") else full(message))
            if request.get("stream"):
                events("record", offset=message.offset())
        reached = consumer.position([partition_of(request)])[0].offset
        return {"records": records, "position": reached if reached >= 0 else max(offset, 0)}
    finally:
        consumer.close()


def consume_topic(request, events):
    """Reads all partitions of a topic at once; each record is told as [partition, offset, key]."""
    consumer = simple_consumer(request)
    try:
        consumer.assign([TopicPartition(request["topic"], i, 0) for i in range(request["partitions"])])
        deadline = time.monotonic() + request.get("timeoutMs", 30000) / 1000
        records = []
        while len(records) < request["count"] and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.5):
                if message.error():
                    raise KafkaException(message.error())
                records.append([message.partition(), *brief(message)])
            events("progress", acked=len(records))
        return {"records": records}
    finally:
        consumer.close()


def brief(message):
    return [message.offset(), message.key().decode()]


def full(message):
    kind, timestamp = message.timestamp()
    return {
        "offset": message.offset(),
        "timestamp": timestamp if kind else None,
        "key": encode(message.key()),
        "value": encode(message.value()),
        "headers": [[name, encode(value)] for name, value in message.headers() or []],
    }


def partition_of(request):
    return TopicPartition(request["topic"], request.get("partition", 0))


def look_up(consumer, request, timestamp):
    wanted = partition_of(request)
    wanted.offset = timestamp
    found = consumer.offsets_for_times([wanted], timeout=30)[0]
    if found.error:
        raise KafkaException(found.error)
    return {"offset": found.offset if found.offset >= 0 else None, "timestamp": None}


def offset(request):
    at = request["at"]
    if at == "maxTimestamp":
        specs = {partition_of(request): OffsetSpec.max_timestamp()}
        found = next(iter(admin().list_offsets(specs).values())).result(30)
        known = found.offset >= 0
        return {"offset": found.offset if known else None, "timestamp": found.timestamp if known else None}
    consumer = simple_consumer(request)
    try:
        if isinstance(at, int):
            return look_up(consumer, request, at)
        low, high = consumer.get_watermark_offsets(partition_of(request), timeout=30)
        return {"offset": low if at == "earliest" else high, "timestamp": None}
    finally:
        consumer.close()


def admin():
    """One for all commands: its answers come only while it lives."""
    global shared_admin
    with making_admin:
        if shared_admin is None:
            shared_admin = AdminClient(base_config({}))
        return shared_admin


def create_topic(request):
    topic = NewTopic(request["topic"], request.get("partitions", 1), 1, config=request.get("configs") or {})
    admin().create_topics([topic])[request["topic"]].result(30)
    return {}


def delete_topic(request):
    admin().delete_topics([request["topic"]])[request["topic"]].result(30)
    return {}


def describe_topic(request):
    from confluent_kafka import TopicCollection

    description = admin().describe_topics(TopicCollection([request["topic"]]))[request["topic"]].result(30)
    return {"partitions": len(description.partitions), "topicId": str(description.topic_id)}


def topic_config(request):
    resource = ConfigResource(ConfigResource.Type.TOPIC, request["topic"])
    return {"value": admin().describe_configs([resource])[resource].result(30)[request["name"]].value}


def list_topics(request):
    return {"topics": sorted(admin().list_topics(timeout=30).topics)}


class Member:
    def __init__(self, request, events):
        self.request = request
        self.events = events
        self.stopped = False

    def stop(self):
        self.stopped = True

    def run(self):
        request = self.request
        config = base_config(request)
        config.update({
            "group.id": request["groupId"],
            "client.id": request.get("clientId", "member"),
            "enable.auto.commit": request.get("commit", "each") == "auto",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": request.get("metadataMaxAgeMs", 2000),
            "max.poll.interval.ms": max(request.get("rebalanceTimeoutMs", 30000), request.get("sessionTimeoutMs", 10000)),
        })
        if request.get("instanceId"):
            config["group.instance.id"] = request["instanceId"]
        if request.get("protocol", "classic") == "consumer":
            config["group.protocol"] = "consumer"
            if request.get("strategy"):
                config["group.remote.assignor"] = request["strategy"]
        else:
            config["session.timeout.ms"] = request.get("sessionTimeoutMs", 10000)
            config["heartbeat.interval.ms"] = request.get("heartbeatMs", 500)
            if request.get("strategy"):
                config["partition.assignment.strategy"] = request["strategy"]
        consumer = Consumer(config)
        consumer.subscribe(
            # A name that starts with ^ is a pattern to librdkafka.
            ["^" + request["pattern"].lstrip("^")] if request.get("pattern") else request["topics"],
            on_assign=lambda _, partitions: self.tell("assigned", partitions),
            on_revoke=lambda _, partitions: self.tell("revoked", partitions),
            on_lost=lambda _, partitions: self.tell("lost", partitions),
        )
        try:
            while not self.stopped:
                self.poll(consumer)
        finally:
            consumer.close()
        return {}

    def poll(self, consumer):
        messages = consumer.consume(500, 0.1)
        seen = []
        for message in messages:
            if not message.error():
                seen.append([message.topic(), message.partition(), *brief(message)])
            elif message.error().code() not in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
                self.events("warning", message=str(message.error()))
        if not seen:
            return
        self.events("records", records=seen)
        if self.request.get("commit", "each") == "each":
            try:
                consumer.commit(asynchronous=False)
                self.events("committed")
            except KafkaException as failure:
                self.events("warning", message=str(failure))

    def tell(self, name, partitions):
        self.events(name, partitions=[[partition.topic, partition.partition] for partition in partitions])


def committed(request):
    config = base_config(request)
    config.update({"group.id": request["groupId"], "enable.auto.commit": False})
    consumer = Consumer(config)
    try:
        if request.get("commitOffset") is not None:
            wanted = TopicPartition(
                request["topic"], request.get("partition", 0), request["commitOffset"], request.get("metadata", ""))
            for done in consumer.commit(offsets=[wanted], asynchronous=False):
                if done.error:
                    raise KafkaException(done.error)
        found = consumer.committed([partition_of(request)], timeout=30)[0]
        if found.error:
            raise KafkaException(found.error)
        if found.offset < 0:
            return {"offset": None, "metadata": None}
        return {"offset": found.offset, "metadata": found.metadata or ""}
    finally:
        consumer.close()


def transactional_producer(request):
    config = base_config(request)
    config.update({
        "transactional.id": request["transactionalId"],
        "transaction.timeout.ms": request.get("transactionTimeoutMs", 60000),
        "linger.ms": 2,
    })
    producer = Producer(config)
    patiently(lambda: producer.init_transactions(20))
    return producer


def patiently(call):
    """Repeats what the client says may be repeated."""
    for attempt in range(40):
        try:
            return call()
        except KafkaException as failure:
            if attempt == 39 or not failure.args[0].retriable():
                raise
            time.sleep(0.1)


class Transactions:
    def __init__(self, request, events):
        self.request = request
        self.events = events
        self.stopped = threading.Event()

    def transact(self):
        producer = transactional_producer(self.request)
        for transaction in self.request["transactions"]:
            producer.begin_transaction()
            records = generated(transaction["generate"]) if "generate" in transaction else transaction["records"]
            for record in records:
                producer.produce(
                    transaction["topic"],
                    key=decode(record["key"]),
                    value=decode(record["value"]),
                    partition=record.get("partition", 0),
                )
            producer.flush()
            if transaction.get("hold"):
                self.events("held")
                self.stopped.wait()
            if transaction.get("end") == "abort":
                patiently(lambda: producer.abort_transaction(20))
            else:
                patiently(lambda: producer.commit_transaction(20))
            self.events("ended")
        return {}

    def copy(self):
        request = self.request
        config = base_config(request)
        config.update({
            "group.id": request["groupId"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
            "session.timeout.ms": request.get("sessionTimeoutMs", 10000),
            "heartbeat.interval.ms": 500,
        })
        consumer = Consumer(config)
        consumer.subscribe([request["topic"]])
        producer = transactional_producer(request)
        copied = transactions = 0
        try:
            while not self.stopped.is_set():
                messages = [m for m in consumer.consume(request.get("batch", 100), 0.1) if not m.error()]
                if not messages:
                    continue
                transactions += 1
                try:
                    producer.begin_transaction()
                    for message in messages:
                        producer.produce(
                            request["output"],
                            key=message.key(),
                            value=message.value(),
                            partition=message.partition(),
                        )
                    offsets = consumer.position(consumer.assignment())
                    patiently(lambda: producer.send_offsets_to_transaction(
                        [one for one in offsets if one.offset >= 0], consumer.consumer_group_metadata(), 20))
                    every = request.get("abortEvery", 0)
                    if every and transactions % every == 0:
                        producer.flush()
                        patiently(lambda: producer.abort_transaction(20))
                        self.events("aborted")
                        self.rewind(consumer)
                        continue
                    patiently(lambda: producer.commit_transaction(20))
                    copied += len(messages)
                    self.events("progress", acked=copied)
                except KafkaException as failure:
                    if not failure.args[0].txn_requires_abort():
                        raise
                    self.events("warning", message=str(failure))
                    patiently(lambda: producer.abort_transaction(20))
                    self.rewind(consumer)
        finally:
            consumer.close()
        return {"copied": copied}

    @staticmethod
    def rewind(consumer):
        for found in patiently(lambda: consumer.committed(consumer.assignment(), timeout=30)):
            consumer.seek(TopicPartition(found.topic, found.partition, max(found.offset, 0)))


def run(request, events):
    match request["op"]:
        case "produce":
            return produce(request, events)
        case "consume":
            return consume(request, events)
        case "consumeTopic":
            return consume_topic(request, events)
        case "offset":
            return offset(request)
        case "createTopic":
            return create_topic(request)
        case "deleteTopic":
            return delete_topic(request)
        case "describeTopic":
            return describe_topic(request)
        case "topicConfig":
            return topic_config(request)
        case "listTopics":
            return list_topics(request)
        case "member":
            member = Member(request, events)
            stops[request["id"]] = member.stop
            return member.run()
        case "transact" | "copy" as op:
            transactions = Transactions(request, events)
            stops[request["id"]] = transactions.stopped.set
            return transactions.transact() if op == "transact" else transactions.copy()
        case "stop":
            stops[request["target"]]()
            return {}
        case "committed":
            return committed(request)
        case op:
            raise ValueError(f"no command is named {op}")


def serve(request):
    def events(name, **fields):
        emit({"id": request["id"], "event": name, **fields})

    try:
        emit({"id": request["id"], "result": run(request, events)})
    except KafkaException as failure:
        error = failure.args[0]
        # Codes below zero are librdkafka's own, not the broker's.
        code = error.code() if error.code() >= 0 else None
        if error.code() == KafkaError._AUTO_OFFSET_RESET and "Broker: Offset out of range" in str(error):
            code = KafkaError.OFFSET_OUT_OF_RANGE
        emit({"id": request["id"], "error": {"code": code, "name": error.name(), "message": str(error)}})
    except Exception as failure:  # every command must end with one line
        emit({"id": request["id"], "error": {"code": None, "name": type(failure).__name__, "message": str(failure)}})


for line in sys.stdin:
    threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()
