import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * The programs of bench/kafka.py in Kafka Streams: overdue orders (a left join whose other side is missing), and pairs of
 * orders with one number. Topics are keyed by the number already, so that nothing is sent through the broker twice.
 * Arguments: overdue|pairs, server, from, to, folder, milliseconds between commits.
 */
public class Streams {
    static final ObjectMapper JSON = new ObjectMapper();

    static JsonNode read(byte[] data) {
        try {
            return JSON.readTree(data);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    static byte[] write(JsonNode node) {
        try {
            return JSON.writeValueAsBytes(node);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    public static void main(String[] given) throws Exception {
        boolean overdue = given[0].equals("overdue");
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "streams-" + given[2]);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, given[4]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, given[5]);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put("consumer.auto.offset.reset", "earliest");
        long perUnit = overdue ? 1 : 1000;
        var nodes = Serdes.serdeFrom(
            (Serializer<JsonNode>) (topic, node) -> node == null ? null : write(node),
            (Deserializer<JsonNode>) (topic, data) -> data == null ? null : read(data));
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, JsonNode> all = builder.stream(given[2], Consumed.with(Serdes.String(), nodes)
            .withTimestampExtractor((row, before) -> ((JsonNode) row.value()).get("time").asLong() / perUnit));
        var joined = StreamJoined.with(Serdes.String(), nodes, nodes);
        if (overdue) {
            KStream<String, JsonNode> orders = all.filter(
                (key, node) -> node.get("event").asText().equals("order") && node.get("data").get(1).asInt() < 10);
            KStream<String, JsonNode> shipped = all.filter((key, node) -> node.get("event").asText().equals("shipped"));
            JoinWindows within = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(60), Duration.ofSeconds(1))
                .before(Duration.ZERO);
            orders.leftJoin(shipped, (order, other) -> other == null ? order : null, within, joined)
                .filter((key, node) -> node != null)
                .to(given[3], Produced.with(Serdes.String(), nodes));
        } else {
            KStream<String, JsonNode> first = all.filter((key, node) -> node.get("data").get(1).asInt() == 1);
            KStream<String, JsonNode> second = all.filter((key, node) -> node.get("data").get(1).asInt() == 2);
            first.join(second, (a, b) -> b, JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofSeconds(10)), joined)
                .to(given[3], Produced.with(Serdes.String(), nodes));
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        CountDownLatch latch = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(20));
            latch.countDown();
        }));
        streams.start();
        latch.await();
    }
}
