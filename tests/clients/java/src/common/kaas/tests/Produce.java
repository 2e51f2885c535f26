package kaas.tests;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The command `produce`. */
final class Produce {
  private static final int progressEvery = 200;

  private Produce() {}

  static Object run(String bootstrap, Request request, Main.Events events) throws Exception {
    List<ProducerRecord<byte[], byte[]>> records = records(request);
    KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(properties(bootstrap, request), new ByteArraySerializer(), new ByteArraySerializer());
    try {
      AtomicInteger acked = new AtomicInteger();
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (ProducerRecord<byte[], byte[]> record : records) {
        sent.add(producer.send(record, (metadata, error) -> {
          if (error == null && acked.incrementAndGet() % progressEvery == 0) events.emit("progress", "acked", (long) acked.get());
        }));
      }
      List<Object> result = new ArrayList<>();
      for (Future<RecordMetadata> future : sent) {
        RecordMetadata metadata = future.get();
        result.add(Arrays.asList((long) metadata.partition(), metadata.offset()));
      }
      return Main.map("acked", result);
    } finally {
      producer.close();
    }
  }

  private static Map<String, Object> properties(String bootstrap, Request request) {
    Map<String, Object> properties = new HashMap<>();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("acks", request.number("acks", -1) == -1 ? "all" : String.valueOf(request.number("acks", -1)));
    properties.put("compression.type", request.text("compression", "none"));
    properties.put("linger.ms", (int) request.number("lingerMs", 0));
    properties.put("batch.size", (int) request.number("batchBytes", 16384));
    properties.put("max.request.size", (int) request.number("maxRequestBytes", 1048576));
    properties.put("max.block.ms", (int) request.number("timeoutMs", 60_000));
    Compat.producerProperties(properties, request);
    request.addConfig(properties);
    return properties;
  }

  static List<ProducerRecord<byte[], byte[]>> records(Request request) {
    String topic = request.text("topic", "");
    List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
    if (request.has("generate")) {
      Request generate = request.nested("generate");
      long partitions = generate.number("partitions", 1);
      for (long i = 0; i < generate.number("count", 0); i++) {
        String key = generate.text("prefix", "") + "-" + i;
        byte[] value = Arrays.copyOf(key.getBytes(StandardCharsets.UTF_8),
            Math.max(key.length(), (int) generate.number("valueBytes", 0)));
        Arrays.fill(value, key.length(), value.length, (byte) '.');
        records.add(new ProducerRecord<>(topic, (int) (i % partitions), key.getBytes(StandardCharsets.UTF_8), value));
      }
      return records;
    }
    for (Object item : request.list("records")) records.add(Compat.record(topic, new Request(item)));
    return records;
  }

  static byte[] bytes(Object base64) {
    return base64 == null ? null : Base64.getDecoder().decode((String) base64);
  }

  static String base64(byte[] bytes) {
    return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
  }
}
