package kaas.tests;

import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the records of topic `in` by the number in their keys modulo GROUPS, exactly once, and writes every count to topic
 * `out`, the group and the count in its key. Arguments: bootstrap address, state folder, GROUPS. It runs until it is killed.
 */
public final class Streams {
  public static void main(String[] arguments) {
    int groups = Integer.parseInt(arguments[2]);
    Properties properties = new Properties();
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "counter");
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
    // Each record is to show: nothing is merged on the way.
    properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6_000);
    properties.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 1_000);
    properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    properties.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10_000);
    properties.put(StreamsConfig.producerPrefix("delivery.timeout.ms"), 60_000);
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream("in", Consumed.with(Serdes.String(), Serdes.ByteArray()))
        .map((key, value) -> KeyValue.pair(
            Integer.parseInt(key.substring(key.indexOf('-') + 1)) % groups, new byte[0]))
        .groupByKey(Grouped.with("by-group", Serdes.Integer(), Serdes.ByteArray()))
        .count(Materialized.<Integer, Long>as(Stores.inMemoryKeyValueStore("counts"))
            .withKeySerde(Serdes.Integer()).withValueSerde(Serdes.Long()))
        .toStream()
        .map((group, count) -> KeyValue.pair(
            group + "=" + count, String.valueOf(count).getBytes(StandardCharsets.UTF_8)))
        .to("out", Produced.with(Serdes.String(), Serdes.ByteArray()));
    KafkaStreams streams = new KafkaStreams(builder.build(), properties);
    streams.setUncaughtExceptionHandler(error -> {
      System.err.println(error);
      return StreamThreadExceptionResponse.REPLACE_THREAD;
    });
    streams.setStateListener((now, before) -> System.err.println(before + " -> " + now));
    streams.start();
  }
}
