package kaas.tests;

import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** What differs between versions of the Java client, for 2.0. */
final class Compat {
  static final boolean CLOSE_REVOKES = false;

  private Compat() {}

  static void producerProperties(Map<String, Object> properties, Request request) {
    properties.put("enable.idempotence", request.flag("idempotent"));
    properties.put("request.timeout.ms", (int) Math.min(30_000, request.number("timeoutMs", 60_000)));
    properties.put("retries", request.flag("idempotent") ? Integer.MAX_VALUE : 20);
  }

  static void memberProperties(Map<String, Object> properties, Request request) {
    properties.put("client.id", request.text("clientId", "member"));
    properties.put("session.timeout.ms", (int) request.number("sessionTimeoutMs", 10_000));
    properties.put("heartbeat.interval.ms", (int) request.number("heartbeatMs", 500));
    properties.put("max.poll.interval.ms", (int) request.number("rebalanceTimeoutMs", 30_000));
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
    consumer.close(Duration.ZERO);
  }

  static OffsetAndMetadata committed(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
    return consumer.committed(partition);
  }

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

  static void sendOffsets(KafkaProducer<byte[], byte[]> producer, Map<TopicPartition, OffsetAndMetadata> offsets,
      KafkaConsumer<byte[], byte[]> consumer, String groupId) {
    producer.sendOffsetsToTransaction(offsets, groupId);
  }

  static void closeAtOnce(KafkaProducer<byte[], byte[]> producer) {
    producer.close(0, java.util.concurrent.TimeUnit.MILLISECONDS);
  }

  static Object admin(String op, String bootstrap, Request request) throws Exception {
    try (AdminClient admin = AdminClient.create(Topics.properties(bootstrap))) {
      if (!op.equals("describeTopic")) return Topics.run(admin, op, request);
      String topic = request.text("topic", "");
      return Main.map("partitions",
          (long) admin.describeTopics(Collections.singleton(topic)).all().get().get(topic).partitions().size());
    }
  }
}
