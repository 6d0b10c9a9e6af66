import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.*;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.utils.internals.ImplicitLinkedHashCollection;

/**
 * Random records of Kafka's coordinators, whole and broken, and what Kafka's dump tool prints of them: a line for each, of
 * the parser, key and value in hexadecimal digits (- for null), and the two texts (- for none).
 *
 *   kafka java CoordinatorRecords.java SEED COUNT PARSER CLASS ...
 *
 * PARSER is OffsetsMessageParser, TransactionLogMessageParser or ShareGroupStateMessageParser, CLASS the name of a record's
 * classes without Key and Value, as in org.apache.kafka.coordinator.group.generated.OffsetCommit. Or PARSER is
 * ClusterMetadataLogMessageParser and CLASS a record's own, as in org.apache.kafka.common.metadata.TopicRecord.
 */
public class CoordinatorRecords {
  static Random r;
  static String text() {
    String[] some = {"", "consumer", "consumer", "a", "group-1", "t\u00e4st", "quote\"back\\slash/", "tab\tnl\ncr\r\b\f", "\u0001\u001f\u007f", "\u4e2d\u6587", "\ud83d\ude00"};
    return some[r.nextInt(some.length)];
  }
  static Object value(Class<?> t, java.lang.reflect.Type g, Object was, int depth) throws Exception {
    if (r.nextInt(6) == 0) return was;
    if (t == int.class || t == Integer.class) return switch (r.nextInt(4)) { case 0 -> 0; case 1 -> -1; case 2 -> r.nextInt(65536); default -> r.nextInt(); };
    if (t == long.class || t == Long.class) return switch (r.nextInt(4)) { case 0 -> 0L; case 1 -> -1L; default -> r.nextLong(); };
    if (t == short.class || t == Short.class) return (short) (r.nextInt(4) == 0 ? 0 : r.nextInt());
    if (t == byte.class || t == Byte.class) return (byte) (r.nextInt(12) - 2);
    if (t == double.class) return new double[] {1, -2.5, 1048576, 1e7, 12345678.25, 1e-3, 2.5e-4, 1e300}[r.nextInt(8)];
    if (t == boolean.class) return r.nextBoolean();
    if (t == String.class) return r.nextInt(6) == 0 ? null : text();
    if (t == Uuid.class) return new Uuid(r.nextLong(), r.nextLong());
    if (t == byte[].class) return bytes();
    if (t == ByteBuffer.class) return r.nextInt(3) == 0 ? null : ByteBuffer.wrap(bytes());
    if (List.class.isAssignableFrom(t) && g instanceof ParameterizedType p) {
      if (r.nextInt(8) == 0) return null;
      Class<?> e = (Class<?>) p.getActualTypeArguments()[0];
      List<Object> l = new ArrayList<>();
      for (int i = r.nextInt(3); i > 0; i--) { Object v = value(e, e, null, depth + 1); if (v == null) v = fallback(e); l.add(v); }
      return l;
    }
    if (ImplicitLinkedHashCollection.class.isAssignableFrom(t)) {
      Object c = t.getDeclaredConstructor().newInstance();
      Class<?> e = (Class<?>) ((ParameterizedType) t.getGenericSuperclass()).getActualTypeArguments()[0];
      for (int i = r.nextInt(3); i > 0; i--) ((ImplicitLinkedHashCollection) c).add((ImplicitLinkedHashCollection.Element) make(e, depth + 1));
      return c;
    }
    if (Message.class.isAssignableFrom(t)) return r.nextInt(4) == 0 ? null : make(t, depth + 1);
    return was;
  }
  static Object fallback(Class<?> e) throws Exception {
    if (e == String.class) return "x"; if (e == Integer.class) return 7; if (e == Short.class) return (short) 7; return make(e, 9);
  }
  static byte[] bytes() {
    if (r.nextInt(2) == 0) {
      // What the classic protocol's members send.
      try {
        if (r.nextBoolean()) { short v = (short) r.nextInt(4); ConsumerProtocolSubscription s = (ConsumerProtocolSubscription) make(ConsumerProtocolSubscription.class, 3);
          return MessageUtil.toVersionPrefixedBytes(v, s); }
        short v = (short) r.nextInt(4); return MessageUtil.toVersionPrefixedBytes(v, (ConsumerProtocolAssignment) make(ConsumerProtocolAssignment.class, 3));
      } catch (Throwable t) { }
    }
    byte[] b = new byte[r.nextInt(6)]; r.nextBytes(b); return b;
  }
  static Object make(Class<?> c, int depth) throws Exception {
    Constructor<?> k = c.getDeclaredConstructor(); k.setAccessible(true);
    Object o = k.newInstance();
    if (depth > 8) return o;
    for (java.lang.reflect.Field f : c.getDeclaredFields()) {
      if (Modifier.isStatic(f.getModifiers()) || f.getName().startsWith("_") || f.getName().equals("next") || f.getName().equals("prev")) continue;
      f.setAccessible(true);
      Object was = f.get(o);
      if (r.nextInt(5) != 0) f.set(o, value(f.getType(), f.getGenericType(), was, depth));
    }
    return o;
  }
  static String hex(ByteBuffer b) { if (b == null) return "-"; StringBuilder s = new StringBuilder(); for (int i = b.position(); i < b.limit(); i++) s.append(String.format("%02x", b.get(i))); return s.toString(); }
  public static void main(String[] a) throws Exception {
    r = new Random(Long.parseLong(a[0])); int per = Integer.parseInt(a[1]);
    for (int i = 2; i < a.length; i += 2) {
      String parserName = a[i];
      Class<?> pc = Class.forName("org.apache.kafka.tools.DumpLogSegments$" + parserName);
      Constructor<?> pk = pc.getDeclaredConstructor(); pk.setAccessible(true); Object parser = pk.newInstance();
      Method parse = null; for (Method m : pc.getMethods()) if (m.getName().equals("parse") && m.getParameterTypes()[0] == org.apache.kafka.common.record.internal.Record.class) parse = m; parse.setAccessible(true);
      boolean metadata = parserName.startsWith("ClusterMetadata");
      Class<?> kc = metadata ? null : Class.forName(a[i + 1] + "Key"), vc = Class.forName(a[i + 1] + (metadata ? "" : "Value"));
      short lo = (short) vc.getField("LOWEST_SUPPORTED_VERSION").get(null), hi = (short) vc.getField("HIGHEST_SUPPORTED_VERSION").get(null);
      int made = 0;
      for (int tries = 0; made < per && tries < 4000; tries++) {
        try {
          ApiMessage key = metadata ? null : (ApiMessage) make(kc, 0), val = (ApiMessage) make(vc, 0);
          short version = (short) (lo + r.nextInt(hi - lo + 1));
          ByteBuffer kb = metadata ? null : ByteBuffer.wrap(MessageUtil.toCoordinatorTypePrefixedBytes(key));
          ByteBuffer vb = metadata ? framed(val, version) : made == 1 ? null : ByteBuffer.wrap(MessageUtil.toVersionPrefixedBytes(version, val));
          int bend = r.nextInt(12);
          // Of the three numbers in front: another frame, a type that is none, a version to come.
          if (metadata && bend < 4) { if (bend > 0) vb.put(bend - 1, (byte) (new int[] {9, 60, 5})[bend - 1]); bend = bend == 0 ? 0 : 11; }
          if (vb != null && bend == 0 && vb.remaining() > 3) vb = ByteBuffer.wrap(Arrays.copyOf(vb.array(), vb.remaining() - 1 - r.nextInt(2)));
          if (kb != null && bend == 1 && kb.remaining() > 3) kb = ByteBuffer.wrap(Arrays.copyOf(kb.array(), kb.remaining() - 1));
          if (vb != null && bend == 2) vb.putShort(0, (short) 9);
          if (kb != null && bend == 3) kb.putShort(0, (short) (40 + r.nextInt(3)));
          if (vb != null && bend == 4) vb = ByteBuffer.wrap(Arrays.copyOf(vb.array(), vb.remaining() + 2));
          MemoryRecords m = MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(5, kb == null ? null : copy(kb), vb == null ? null : copy(vb)));
          for (org.apache.kafka.common.record.internal.Record rec : m.records()) {
            Object res = parse.invoke(parser, rec);
            Method km = res.getClass().getDeclaredMethod("key"), vm = res.getClass().getDeclaredMethod("value"); km.setAccessible(true); vm.setAccessible(true);
            Optional<?> ks = (Optional<?>) km.invoke(res), vs = (Optional<?>) vm.invoke(res);
            System.out.println(parserName + "\t" + hex(kb) + "\t" + hex(vb) + "\t" + ks.map(Object::toString).orElse("-").replace("\n", "\\n") + "\t" + vs.map(Object::toString).orElse("-"));
          }
          made++;
        } catch (Throwable t) { if (System.getenv("WHY") != null) t.printStackTrace(); }
      }
      if (made < per) System.err.println("only " + made + " of " + a[i + 1]);
    }
  }
  static ByteBuffer framed(ApiMessage message, short version) {
    var serde = org.apache.kafka.metadata.MetadataRecordSerde.INSTANCE;
    var both = new org.apache.kafka.server.common.ApiMessageAndVersion(message, version);
    var cache = new ObjectSerializationCache();
    ByteBuffer b = ByteBuffer.allocate(serde.recordSize(both, cache));
    serde.write(both, cache, new ByteBufferAccessor(b));
    return b.flip();
  }
  static byte[] copy(ByteBuffer b) { byte[] x = new byte[b.remaining()]; b.duplicate().get(x); return x; }
}
