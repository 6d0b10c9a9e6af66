// Apache Kafka's own clients. ../python/lines.py describes the contract.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Client {
    private static final long PATIENCE_MS = 90_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String address;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private KafkaConsumer<byte[], byte[]> consumer;

    private Client(String address) {
        this.address = address;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        ObjectNode greeting = JSON.createObjectNode();
        greeting.put("client", "java").put("version", version()).put("idempotent", true);
        List.of("none", "gzip", "snappy", "lz4", "zstd").forEach(greeting.putArray("codecs")::add);
        greeting.putArray("cannot");
        out.println(greeting);
        Client client = new Client(args[0]);
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode job = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                switch (job.get("do").asText()) {
                    case "produce" -> client.produce(job, answer);
                    case "consume" -> client.consume(job, answer);
                    case "ends" -> client.ends(job, answer);
                    default -> answer.put("error", "no such job");
                }
            } catch (Exception error) {
                answer.removeAll();
                answer.put("error", error.toString());
            }
            out.println(JSON.writeValueAsString(answer));
        }
        // Nothing is left to say: what runs besides need not be waited for.
        System.exit(0);
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode job) {
        String codec = job.get("codec").asText();
        String acks = job.get("acks").asText();
        boolean idempotent = job.get("idempotent").asBoolean();
        return producers.computeIfAbsent(codec + acks + idempotent, name -> {
            Map<String, Object> settings = Map.of(
                    "bootstrap.servers", address,
                    "compression.type", codec,
                    "acks", acks,
                    "enable.idempotence", String.valueOf(idempotent),
                    "linger.ms", "500",
                    "batch.size", "200000",
                    "max.block.ms", String.valueOf(PATIENCE_MS));
            return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        });
    }

    private void produce(JsonNode job, ObjectNode answer) throws Exception {
        var producer = producer(job);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : job.get("records")) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode header : record.get("headers"))
                headers.add(new RecordHeader(header.get(0).asText(), decode(header.get(1))));
            sent.add(producer.send(new ProducerRecord<>(job.get("topic").asText(), job.get("partition").asInt(),
                    record.get("timestamp").asLong(), decode(record.get("key")), decode(record.get("value")), headers)));
        }
        producer.flush();
        ArrayNode offsets = answer.putArray("offsets");
        for (Future<RecordMetadata> one : sent) offsets.add(one.get().offset());
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        if (consumer == null) {
            Map<String, Object> settings = Map.of(
                    "bootstrap.servers", address,
                    "enable.auto.commit", "false",
                    "auto.offset.reset", "none",
                    "allow.auto.create.topics", "false",
                    "default.api.timeout.ms", String.valueOf(PATIENCE_MS));
            consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }
        return consumer;
    }

    private void consume(JsonNode job, ObjectNode answer) {
        var consumer = consumer();
        TopicPartition partition = partition(job);
        consumer.assign(List.of(partition));
        long offset = job.has("time")
                ? Objects.requireNonNull(consumer.offsetsForTimes(Map.of(partition, job.get("time").asLong()))
                        .get(partition), "no offset for the time").offset()
                : job.get("offset").asLong();
        consumer.seek(partition, offset);
        long until = job.get("until").asLong();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        ArrayNode records = answer.putArray("records");
        while (records.isEmpty() || consumer.position(partition) < until) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                ObjectNode line = records.addObject();
                line.put("offset", record.offset()).put("timestamp", record.timestamp());
                line.put("key", encode(record.key())).put("value", encode(record.value()));
                ArrayNode headers = line.putArray("headers");
                for (Header header : record.headers()) headers.addArray().add(header.key()).add(encode(header.value()));
            }
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException(records.size() + " records came");
        }
    }

    private void ends(JsonNode job, ObjectNode answer) {
        var one = List.of(partition(job));
        answer.put("first", consumer().beginningOffsets(one).get(one.get(0)));
        answer.put("end", consumer().endOffsets(one).get(one.get(0)));
    }

    private static String version() throws IOException {
        Properties properties = new Properties();
        try (InputStream in = KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            properties.load(in);
        }
        return properties.getProperty("version");
    }

    private static TopicPartition partition(JsonNode job) {
        return new TopicPartition(job.get("topic").asText(), job.get("partition").asInt());
    }

    private static byte[] decode(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static String encode(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
