package kaas.tests;

import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.internals.Fetcher;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * What differs between versions of the Java client, for 0.9: no ApiVersions, records without timestamps and headers,
 * and offsets found by the first version of ListOffsets.
 */
final class Compat {
  static final boolean CLOSE_REVOKES = false;

  private Compat() {}

  static void producerProperties(Map<String, Object> properties, Request request) {
    properties.put("request.timeout.ms", (int) Math.min(30_000, request.number("timeoutMs", 60_000)));
    properties.put("retries", 20);
  }

  static void memberProperties(Map<String, Object> properties, Request request) {
    properties.put("client.id", request.text("clientId", "member"));
    properties.put("session.timeout.ms", (int) request.number("sessionTimeoutMs", 10_000));
    properties.put("heartbeat.interval.ms", (int) request.number("heartbeatMs", 500));
    if (request.has("strategy")) {
      properties.put("partition.assignment.strategy", request.text("strategy", "").equals("range")
          ? "org.apache.kafka.clients.consumer.RangeAssignor"
          : "org.apache.kafka.clients.consumer.RoundRobinAssignor");
    }
  }

  static ProducerRecord<byte[], byte[]> record(String topic, Request record) {
    return new ProducerRecord<>(
        topic,
        (int) record.number("partition", 0),
        Produce.bytes(record.get("key")),
        Produce.bytes(record.get("value")));
  }

  static Object headers(ConsumerRecord<byte[], byte[]> record) {
    return Collections.emptyList();
  }

  static Object timestamp(ConsumerRecord<byte[], byte[]> record) {
    return null;
  }

  static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long milliseconds) {
    return consumer.poll(milliseconds);
  }

  /** Without waiting for a fetch that is under way, which may be a long one. */
  static void closeAtOnce(KafkaConsumer<byte[], byte[]> consumer) {
    consumer.close();
  }

  static OffsetAndMetadata committed(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
    return consumer.committed(partition);
  }

  static long[] offset(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, Object at) {
    if ("earliest".equals(at)) consumer.seekToBeginning(partition);
    else if ("latest".equals(at)) consumer.seekToEnd(partition);
    else throw new UnsupportedOperationException("this client cannot look up timestamps");
    lookUp(consumer, partition);
    return new long[] {consumer.position(partition), -1};
  }

  /** What the consumer does itself for a position, less its look at the group's committed offset in front of that. */
  private static void lookUp(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
    try {
      Field field = KafkaConsumer.class.getDeclaredField("fetcher");
      field.setAccessible(true);
      ((Fetcher<?, ?>) field.get(consumer)).updateFetchPositions(Collections.singleton(partition));
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  static Object other(String op, String bootstrap, Request request, long id, Main.Events events) throws Exception {
    return admin(op, bootstrap, request);
  }

  static Object admin(String op, String bootstrap, Request request) {
    throw new UnsupportedOperationException("this client has no command " + op);
  }
}
