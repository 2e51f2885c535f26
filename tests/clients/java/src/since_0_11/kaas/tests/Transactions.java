package kaas.tests;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The commands `transact` and `copy`: a transactional producer, alone and behind a consumer. */
final class Transactions {
  private final String bootstrap;
  private final Request request;
  private final Main.Events events;
  private final CountDownLatch stopped = new CountDownLatch(1);

  Transactions(String bootstrap, Request request, Main.Events events) {
    this.bootstrap = bootstrap;
    this.request = request;
    this.events = events;
  }

  void stop() {
    stopped.countDown();
  }

  private boolean isStopped() {
    return stopped.getCount() == 0;
  }

  Object transact() throws Exception {
    try (KafkaProducer<byte[], byte[]> producer = producer()) {
      for (Object item : request.list("transactions")) {
        Request transaction = new Request(item);
        producer.beginTransaction();
        for (ProducerRecord<byte[], byte[]> record : Produce.records(transaction)) producer.send(record);
        producer.flush();
        if (transaction.flag("hold")) {
          events.emit("held");
          stopped.await();
        }
        if (transaction.text("end", "commit").equals("abort")) producer.abortTransaction();
        else producer.commitTransaction();
        events.emit("ended");
      }
    }
    return Main.map();
  }

  Object copy() {
    long copied = 0;
    long transactions = 0;
    long abortEvery = request.number("abortEvery", 0);
    KafkaProducer<byte[], byte[]> producer = producer();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(consumerProperties(), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.subscribe(java.util.Collections.singletonList(request.text("topic", "")));
      while (!isStopped()) {
        ConsumerRecords<byte[], byte[]> records = Compat.poll(consumer, 100);
        if (records.isEmpty()) continue;
        try {
          producer.beginTransaction();
          Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
          for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(request.text("output", ""), record.partition(), record.key(), record.value()));
            offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
          }
          Compat.sendOffsets(producer, offsets, consumer, request.text("groupId", ""));
          transactions++;
          if (abortEvery > 0 && transactions % abortEvery == 0) {
            producer.flush();
            producer.abortTransaction();
            events.emit("aborted");
            rewind(consumer);
            continue;
          }
          patiently(producer::commitTransaction);
          copied += records.count();
          events.emit("progress", "acked", copied);
        } catch (ProducerFencedException fenced) {
          throw fenced;
        } catch (KafkaException failure) {
          events.emit("warning", "message", String.valueOf(failure));
          try {
            patiently(producer::abortTransaction);
          } catch (ProducerFencedException fenced) {
            throw fenced;
          } catch (KafkaException unusable) {
            events.emit("warning", "message", String.valueOf(unusable));
            Compat.closeAtOnce(producer);
            producer = producer();
          }
          rewind(consumer);
        }
      }
    } finally {
      Compat.closeAtOnce(producer);
    }
    return Main.map("copied", copied);
  }

  /** An end that timed out is asked for again: nothing else is allowed. */
  private static void patiently(Runnable end) {
    for (int attempt = 0; ; attempt++) {
      try {
        end.run();
        return;
      } catch (TimeoutException late) {
        if (attempt == 20) throw late;
      }
    }
  }

  private static void rewind(KafkaConsumer<byte[], byte[]> consumer) {
    for (TopicPartition partition : consumer.assignment()) {
      OffsetAndMetadata committed = Compat.committed(consumer, partition);
      consumer.seek(partition, committed == null ? 0 : committed.offset());
    }
  }

  private KafkaProducer<byte[], byte[]> producer() {
    Map<String, Object> properties = new HashMap<>();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("transactional.id", request.text("transactionalId", ""));
    properties.put("transaction.timeout.ms", (int) request.number("transactionTimeoutMs", 60_000));
    properties.put("acks", "all");
    properties.put("max.block.ms", 20_000);
    properties.put("linger.ms", 2);
    request.addConfig(properties);
    KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    patiently(producer::initTransactions);
    return producer;
  }

  private Map<String, Object> consumerProperties() {
    Map<String, Object> properties = new HashMap<>();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("group.id", request.text("groupId", ""));
    properties.put("enable.auto.commit", "false");
    properties.put("auto.offset.reset", "earliest");
    properties.put("isolation.level", "read_committed");
    properties.put("fetch.max.wait.ms", 100);
    properties.put("max.poll.records", (int) request.number("batch", 100));
    Compat.memberProperties(properties, request);
    return properties;
  }
}
