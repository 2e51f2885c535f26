package kaas.tests;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** What differs between versions of the Java client, for 4.x. */
final class Compat {
  static final boolean CLOSE_REVOKES = true;

  private Compat() {}

  static void producerProperties(Map<String, Object> properties, Request request) {
    properties.put("enable.idempotence", request.flag("idempotent"));
    properties.put("delivery.timeout.ms", (int) request.number("timeoutMs", 60_000));
    properties.put("request.timeout.ms", (int) Math.min(30_000, request.number("timeoutMs", 60_000)));
  }

  static void memberProperties(Map<String, Object> properties, Request request) {
    properties.put("client.id", request.text("clientId", "member"));
    if (request.has("instanceId")) properties.put("group.instance.id", request.get("instanceId"));
    properties.put("max.poll.interval.ms", (int) request.number("rebalanceTimeoutMs", 30_000));
    if (request.text("protocol", "classic").equals("consumer")) {
      properties.put("group.protocol", "consumer");
      if (request.has("strategy")) properties.put("group.remote.assignor", request.get("strategy"));
      return;
    }
    properties.put("session.timeout.ms", (int) request.number("sessionTimeoutMs", 10_000));
    properties.put("heartbeat.interval.ms", (int) request.number("heartbeatMs", 500));
    if (request.has("strategy")) properties.put("partition.assignment.strategy", Headers.strategies(request));
  }

  static ProducerRecord<byte[], byte[]> record(String topic, Request record) {
    return Headers.record(topic, record);
  }

  static Object headers(ConsumerRecord<byte[], byte[]> record) {
    return Headers.list(record);
  }

  static Object timestamp(ConsumerRecord<byte[], byte[]> record) {
    return record.timestamp();
  }

  static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long milliseconds) {
    return consumer.poll(Duration.ofMillis(milliseconds));
  }

  /** Without waiting for a fetch that is under way, which may be a long one. */
  static void closeAtOnce(KafkaConsumer<byte[], byte[]> consumer) {
    consumer.close(CloseOptions.timeout(Duration.ZERO));
  }

  static OffsetAndMetadata committed(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
    return consumer.committed(Collections.singleton(partition)).get(partition);
  }

  /** Offset and timestamp of a place; -1 for what there is none of. */
  static long[] offset(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, Object at) {
    if ("earliest".equals(at)) {
      return new long[] {consumer.beginningOffsets(Collections.singleton(partition)).get(partition), -1};
    }
    if ("latest".equals(at)) {
      return new long[] {consumer.endOffsets(Collections.singleton(partition)).get(partition), -1};
    }
    OffsetAndTimestamp found = consumer.offsetsForTimes(Collections.singletonMap(partition, (Long) at)).get(partition);
    return found == null ? new long[] {-1, -1} : new long[] {found.offset(), found.timestamp()};
  }

  static Object other(String op, String bootstrap, Request request, long id, Main.Events events) throws Exception {
    if (!op.equals("transact") && !op.equals("copy")) return admin(op, bootstrap, request);
    Transactions transactions = new Transactions(bootstrap, request, events);
    Main.stops.put(id, transactions::stop);
    return op.equals("copy") ? transactions.copy() : transactions.transact();
  }

  /** With what the group knows of the consumer (KIP-447). */
  static void sendOffsets(KafkaProducer<byte[], byte[]> producer, Map<TopicPartition, OffsetAndMetadata> offsets,
      KafkaConsumer<byte[], byte[]> consumer, String groupId) {
    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
  }

  static void closeAtOnce(KafkaProducer<byte[], byte[]> producer) {
    producer.close(Duration.ZERO);
  }

  static Object admin(String op, String bootstrap, Request request) throws Exception {
    try (Admin admin = Admin.create(Topics.properties(bootstrap))) {
      switch (op) {
        case "describeTopic":
          String topic = request.text("topic", "");
          TopicDescription description =
              admin.describeTopics(Collections.singleton(topic)).allTopicNames().get().get(topic);
          return Main.map(
              "partitions", (long) description.partitions().size(),
              "topicId", description.topicId().toString());
        case "maxTimestamp":
          TopicPartition partition = Consume.partition(request);
          ListOffsetsResult.ListOffsetsResultInfo found =
              admin.listOffsets(Collections.singletonMap(partition, OffsetSpec.maxTimestamp())).all().get().get(partition);
          return Main.map("offset", found.offset() == -1 ? null : found.offset(),
              "timestamp", found.timestamp() == -1 ? null : found.timestamp());
        case "describeCluster":
          return Main.map(
              "clusterId", admin.describeCluster().clusterId().get(),
              "nodes", Arrays.asList((long) admin.describeCluster().nodes().get().size()));
        default:
          return Topics.run(admin, op, request);
      }
    }
  }
}
