package kaas.tests;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The commands `consume` and `offset`: a consumer with an assignment of its own choice and no group. */
final class Consume {
  private Consume() {}

  static Object run(String bootstrap, Request request, Main.Events events) {
    TopicPartition partition = partition(request);
    long count = request.number("count", Long.MAX_VALUE);
    long deadline = System.currentTimeMillis() + request.number("timeoutMs", 30_000);
    List<Object> records = new ArrayList<>();
    KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, request);
    try {
      consumer.assign(Collections.singletonList(partition));
      Object from = request.get("from");
      if (from instanceof Long) consumer.seek(partition, (Long) from);
      else consumer.seek(partition, Compat.offset(consumer, partition, place(from))[0]);
      events.emit("positioned", "offset", consumer.position(partition));
      // A reader may have to get past records that it is not shown.
      long end = request.number("untilPosition", Long.MAX_VALUE);
      while (records.size() < count && consumer.position(partition) < end && System.currentTimeMillis() < deadline) {
        for (ConsumerRecord<byte[], byte[]> record : Compat.poll(consumer, 500)) {
          records.add(request.flag("keysOnly") ? brief(record) : full(record));
          if (request.flag("stream")) events.emit("record", "offset", record.offset());
        }
      }
      return Main.map("records", records, "position", consumer.position(partition));
    } finally {
      Compat.closeAtOnce(consumer);
    }
  }

  /** Reads all partitions of a topic at once; each record is told as [partition, offset, key]. */
  static Object runTopic(String bootstrap, Request request, Main.Events events) {
    List<TopicPartition> partitions = new ArrayList<>();
    for (int i = 0; i < request.number("partitions", 1); i++) partitions.add(new TopicPartition(request.text("topic", ""), i));
    long count = request.number("count", Long.MAX_VALUE);
    long deadline = System.currentTimeMillis() + request.number("timeoutMs", 30_000);
    List<Object> records = new ArrayList<>();
    KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, request);
    try {
      consumer.assign(partitions);
      for (TopicPartition partition : partitions) consumer.seek(partition, 0);
      while (records.size() < count && System.currentTimeMillis() < deadline) {
        for (ConsumerRecord<byte[], byte[]> record : Compat.poll(consumer, 500)) {
          List<Object> item = new ArrayList<>(Collections.singletonList((long) record.partition()));
          item.addAll((List<?>) brief(record));
          records.add(item);
        }
        events.emit("progress", "acked", (long) records.size());
      }
      return Main.map("records", records);
    } finally {
      Compat.closeAtOnce(consumer);
    }
  }

  static Object offset(String bootstrap, Request request) {
    try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, request)) {
      if ("maxTimestamp".equals(request.get("at"))) return Compat.admin("maxTimestamp", bootstrap, request);
      TopicPartition partition = partition(request);
      consumer.assign(Collections.singletonList(partition));
      long[] found = Compat.offset(consumer, partition, request.get("at"));
      return Main.map("offset", found[0] == -1 ? null : found[0], "timestamp", found[1] == -1 ? null : found[1]);
    } catch (RuntimeException error) {
      throw error;
    } catch (Exception error) {
      throw new RuntimeException(error);
    }
  }

  /** "earliest", "latest" or the milliseconds of {"timestamp": …}. */
  private static Object place(Object from) {
    return from instanceof Map ? new Request(from).get("timestamp") : from;
  }

  static TopicPartition partition(Request request) {
    return new TopicPartition(request.text("topic", ""), (int) request.number("partition", 0));
  }

  static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, Request request) {
    Map<String, Object> properties = new HashMap<>();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("enable.auto.commit", "false");
    properties.put("auto.offset.reset", "none");
    properties.put("fetch.min.bytes", (int) request.number("minBytes", 1));
    properties.put("fetch.max.wait.ms", (int) request.number("maxWaitMs", 500));
    properties.put("max.partition.fetch.bytes", (int) request.number("maxBytes", 1048576));
    properties.put("request.timeout.ms", 90_000);
    request.addConfig(properties);
    return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  static Object brief(ConsumerRecord<byte[], byte[]> record) {
    return Arrays.asList(record.offset(), new String(record.key(), StandardCharsets.UTF_8));
  }

  private static Object full(ConsumerRecord<byte[], byte[]> record) {
    return Main.map(
        "offset", record.offset(),
        "timestamp", Compat.timestamp(record),
        "key", Produce.base64(record.key()),
        "value", Produce.base64(record.value()),
        "headers", Compat.headers(record));
  }
}
