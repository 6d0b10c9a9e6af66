// Fills the partitions of a topic through a producer with Kafka's own defaults (idempotent, all acknowledged).
//
//   Produce.java HOST:PORT TOPIC FROM COUNT CODEC[,CODEC...] [FIRST_TIMESTAMP]
//                                                          one codec for each partition, from partition 0 on
//
// Records FROM up to FROM + COUNT, the same for every partition: keys, values and headers of all kinds, several batches.
// Exit code 1 if one was not acknowledged.

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Produce {
    private static final int PER_BATCH = 25;

    public static void main(String[] args) throws Exception {
        int from = Integer.parseInt(args[2]);
        int to = from + Integer.parseInt(args[3]);
        String[] codecs = args[4].split(",");
        long first = args.length > 5 ? Long.parseLong(args[5]) : 1_700_000_000_000L;
        for (int partition = 0; partition < codecs.length; partition++) {
            Random random = new Random(partition);
            Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "compression.type", codecs[partition],
                    "linger.ms", "60000", "delivery.timeout.ms", "120000", "batch.size", "500000");
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
                for (int i = from; i < to; i++) {
                    sent.add(producer.send(new ProducerRecord<>(args[1], partition, first + i * 1000L,
                            key(i), value(i, random), headers(i))));
                    if (i % PER_BATCH == PER_BATCH - 1) producer.flush();
                }
                producer.flush();
                for (Future<RecordMetadata> one : sent) one.get();
            }
        }
    }

    private static byte[] key(int i) {
        return i % 5 == 0 ? null : i % 5 == 1 ? new byte[0] : text("key-" + i);
    }

    private static byte[] value(int i, Random random) {
        if (i % 11 == 3) return null;
        if (i % 11 == 4) return new byte[0];
        if (i % 11 == 5) return text("line " + i + "\nwith a break, \u00fc and \u2603");
        byte[] bytes = new byte[i % 97 == 0 ? 20_000 : 40];
        random.nextBytes(bytes);
        return i % 2 == 0 ? bytes : text(("value " + i + " ").repeat(i % 9 + 1));
    }

    private static List<Header> headers(int i) {
        List<Header> all = new ArrayList<>();
        for (int n = 0; n < i % 4; n++)
            all.add(new RecordHeader(n == 2 ? "same" : "h\u00e9ader-" + n, n == 1 ? null : text("h" + i)));
        if (i % 4 == 3) all.add(new RecordHeader("same", new byte[0]));
        return all;
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
