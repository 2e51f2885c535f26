package kaas.tests;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The commands `member` and `committed`: a consumer that belongs to a group. */
final class Member {
  private final String bootstrap;
  private final Request request;
  private final Main.Events events;
  private volatile boolean stopped = false;

  Member(String bootstrap, Request request, Main.Events events) {
    this.bootstrap = bootstrap;
    this.request = request;
    this.events = events;
  }

  void stop() {
    stopped = true;
  }

  Object run() {
    Listener listener = new Listener();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(properties(), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      if (request.has("pattern")) consumer.subscribe(Pattern.compile(request.text("pattern", "")), listener);
      else consumer.subscribe(topics(), listener);
      while (!stopped) {
        ConsumerRecords<byte[], byte[]> records = Compat.poll(consumer, 100);
        if (records.isEmpty()) continue;
        List<Object> seen = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
          List<Object> item = new ArrayList<>(Arrays.asList((Object) record.topic(), (long) record.partition()));
          item.addAll((List<?>) Consume.brief(record));
          seen.add(item);
        }
        events.emit("records", "records", seen);
        if (request.text("commit", "each").equals("each")) {
          consumer.commitSync();
          events.emit("committed");
        }
      }
      // Old clients do not tell at closing.
      if (!Compat.CLOSE_REVOKES) listener.onPartitionsRevoked(consumer.assignment());
    }
    return Main.map();
  }

  private List<String> topics() {
    List<String> topics = new ArrayList<>();
    for (Object topic : request.list("topics")) topics.add((String) topic);
    return topics;
  }

  private Map<String, Object> properties() {
    Map<String, Object> properties = new HashMap<>();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("group.id", request.text("groupId", ""));
    properties.put("enable.auto.commit", String.valueOf(request.text("commit", "each").equals("auto")));
    properties.put("auto.offset.reset", "earliest");
    properties.put("fetch.max.wait.ms", 100);
    properties.put("metadata.max.age.ms", (int) request.number("metadataMaxAgeMs", 2_000));
    Compat.memberProperties(properties, request);
    request.addConfig(properties);
    return properties;
  }

  static Object committed(String bootstrap, Request request) {
    Map<String, Object> properties = new HashMap<>();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("group.id", request.text("groupId", ""));
    properties.put("enable.auto.commit", "false");
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      TopicPartition partition = Consume.partition(request);
      if (request.has("commitOffset")) {
        consumer.assign(Collections.singletonList(partition));
        consumer.commitSync(Collections.singletonMap(partition,
            new OffsetAndMetadata(request.number("commitOffset", 0), request.text("metadata", ""))));
      }
      OffsetAndMetadata committed = Compat.committed(consumer, partition);
      return Main.map(
          "offset", committed == null ? null : committed.offset(),
          "metadata", committed == null ? null : committed.metadata());
    }
  }

  private final class Listener implements ConsumerRebalanceListener {
    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
      tell("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
      tell("revoked", partitions);
    }

    /** Called by clients since 2.4 only; older ones have no such method to override. */
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
      tell("lost", partitions);
    }

    private void tell(String name, Collection<TopicPartition> partitions) {
      List<Object> list = new ArrayList<>();
      for (TopicPartition partition : partitions) {
        list.add(Arrays.asList((Object) partition.topic(), (long) partition.partition()));
      }
      events.emit(name, "partitions", list);
    }
  }
}
