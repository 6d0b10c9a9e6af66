// Reads partitions through a broker, from their first offsets to where they end now, and prints a JSON line per record.
//
//   Consume.java HOST:PORT TOPIC PARTITION[,PARTITION...] [TIMEOUT_SECONDS [read_committed]]
//                                                                               (default: 60, uncommitted reads)
//
// Each line: partition, offset, timestamp, timestampType (CreateTime or LogAppendTime), leaderEpoch (null where unknown), key,
// value (base64, null for null) and headers, a list of {"key": text, "value": base64 or null} in their order.
// Exit code 1, with a word on standard error, when the end was not reached in time.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Consume {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        List<TopicPartition> all = Arrays.stream(args[2].split(","))
                .map(number -> new TopicPartition(args[1], Integer.parseInt(number))).toList();
        long seconds = args.length > 3 ? Long.parseLong(args[3]) : 60;
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", args[0],
                "enable.auto.commit", "false",
                "auto.offset.reset", "none",
                "max.poll.records", "5000",
                "default.api.timeout.ms", String.valueOf(seconds * 1000),
                "isolation.level", args.length > 4 ? args[4] : "read_uncommitted");
        long deadline = System.nanoTime() + seconds * 1_000_000_000L;
        List<TopicPartition> behind;
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            consumer.beginningOffsets(all).forEach(consumer::seek);
            while (!(behind = behind(consumer, ends)).isEmpty() && System.nanoTime() < deadline)
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(250)))
                    if (record.offset() < ends.get(new TopicPartition(record.topic(), record.partition())))
                        out.println(JSON.writeValueAsString(line(record)));
        }
        out.flush();
        if (!behind.isEmpty()) {
            System.err.println("not read to the end in " + seconds + " s: " + behind);
            System.exit(1);
        }
    }

    private static List<TopicPartition> behind(KafkaConsumer<?, ?> consumer, Map<TopicPartition, Long> ends) {
        return ends.keySet().stream().filter(one -> consumer.position(one) < ends.get(one)).toList();
    }

    private static ObjectNode line(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode line = JSON.createObjectNode();
        line.put("partition", record.partition());
        line.put("offset", record.offset());
        line.put("timestamp", record.timestamp());
        line.put("timestampType", record.timestampType().toString());
        line.put("leaderEpoch", record.leaderEpoch().orElse(null));
        line.put("key", base64(record.key()));
        line.put("value", base64(record.value()));
        ArrayNode headers = line.putArray("headers");
        for (Header header : record.headers())
            headers.addObject().put("key", header.key()).put("value", base64(header.value()));
        return line;
    }

    private static String base64(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
