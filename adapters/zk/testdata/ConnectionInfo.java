import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.*;

/**
 * What Java makes of leader records; the test beside it holds Go to this. Written by Java 17, since the cuts of longer
 * addresses that are not ASCII are others in Java 25:
 *
 *   java ConnectionInfo.java write > written.jsonl    records, as Flink writes them
 *   java ConnectionInfo.java read > read.jsonl        what Flink's readers make of other records
 */
class ConnectionInfo {
    static final UUID SESSION = UUID.fromString("01234567-89ab-cdef-fedc-ba9876543210");

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            write();
        } else {
            read();
        }
    }

    // ---- write

    static void write() throws Exception {
        for (int n : new int[] {0, 1, 2, 252, 253, 254, 255, 1020, 1021, 1022, 1023, 1024, 1276, 1277, 1278, 1500, 2045, 2046, 2047, 2048, 3070, 65534, 65535}) {
            written(SESSION, "a", n);
        }
        for (String c : new String[] {"\0", "\u00e9", "\u20ac", "\ud83d\ude00"}) {
            written(SESSION, c, 1);
            written(SESSION, "http://", 1, c, 3, ":8081", 1);
            for (int before = 1016; before <= 1022; before++) {
                written(SESSION, "a", before, c, 1, "b", 2);
            }
            written(SESSION, c, 65535 / new String(c).chars().map(ConnectionInfo::size).sum());
        }
        written(SESSION, "\ud83d\ude00\0\u00e9\u20aca", 400);
        for (String id : new String[] {"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
                "80000000-0000-0000-7fff-ffffffffffff", "7fffffff-ffff-ffff-8000-000000000000", "c73bcdab-26e8-435b-b7c9-f4e6e9b1e9a3"}) {
            written(UUID.fromString(id), "akka.tcp://flink@10.0.0.1:6123/user/rpc/dispatcher_0", 1);
        }
    }

    static int size(int unit) {
        return unit == 0 ? 2 : unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
    }

    /** The address is each text, so many times. */
    static void written(UUID session, Object... parts) throws Exception {
        StringBuilder address = new StringBuilder();
        List<String> recipe = new ArrayList<>();
        for (int i = 0; i < parts.length; i += 2) {
            address.append(((String) parts[i]).repeat((int) parts[i + 1]));
            recipe.add("{\"text\":" + quoted((String) parts[i]) + ",\"times\":" + parts[i + 1] + "}");
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeUTF(address.toString());
            out.writeObject(session);
        }
        byte[] data = bytes.toByteArray();
        String known = data.length <= 160
            ? "\"hex\":\"" + hex(data)
            : "\"size\":" + data.length + ",\"sha256\":\"" + hex(MessageDigest.getInstance("SHA-256").digest(data));
        System.out.println("{\"address\":[" + String.join(",", recipe) + "],\"session\":\"" + session + "\"," + known + "\"}");
    }

    // ---- read

    static final String MAGIC = "aced0005";
    static final String LEAST = "4a000c" + ascii("leastSigBits"), MOST = "4a000b" + ascii("mostSigBits");
    static final String UUID_NAME = named("java.util.UUID"), UUID_UID = "bc9903f7986d852f";
    static final String LOW = "fedcba9876543210", HIGH = "0123456789abcdef";
    static final String TAIL = object("02", "0002" + LEAST + MOST, "78", "70", LOW + HIGH);

    static void read() throws Exception {
        verdict("one block", MAGIC + "77070005" + ascii("a:123") + TAIL);
        verdict("short block in long form", MAGIC + "7a000000070005" + ascii("a:123") + TAIL);
        verdict("a block for each byte", MAGIC + "77010077010377016177017a770131" + TAIL);
        verdict("empty blocks before and between", MAGIC + "77007a00000000770300037a7a0000000077026162" + TAIL);
        verdict("block of 1026 bytes", MAGIC + "7a000004020400" + ascii("a").repeat(1024) + TAIL);
        verdict("long block cut where Java 25 cuts it", MAGIC + "7a000003fd03fe" + ascii("a").repeat(1019) + "7703e282ac" + TAIL);
        verdict("character cut by a block", MAGIC + "7706" + "0006eda0bded" + "7702b880" + TAIL);
        verdict("reset before the blocks", MAGIC + "797703000161" + TAIL);
        verdict("reset between blocks", MAGIC + "77020001" + "7979" + "770161" + TAIL);
        verdict("reset before the object", MAGIC + "7703000161" + "7979" + TAIL);
        verdict("most significant half first", record("02", "0002" + MOST + LEAST, "78", "70", HIGH + LOW));
        verdict("bytes after the object", MAGIC + "7703000161" + TAIL + "ff00");

        verdict("U+0000 in one byte", utf("610062"));
        verdict("a in two bytes", utf("c1a1"));
        verdict("a in three bytes", utf("e081a1"));
        verdict("U+FFFD", utf("efbfbd"));
        verdict("U+1F600 in four bytes", utf("f09f9880"));
        verdict("three bytes that begin as four do", utf("f09f98"));
        verdict("continuation byte alone", utf("6180"));
        verdict("two bytes cut to one", utf("61c3"));
        verdict("three bytes cut to two", utf("61e282"));
        verdict("two bytes, the second wrong", utf("c341"));
        verdict("three bytes, the second wrong", utf("e241ac"));
        verdict("three bytes, the third wrong", utf("e28241"));
        verdict("character longer than the address", MAGIC + "77040001c3a9" + TAIL);
        verdict("high surrogate alone", utf("61eda0bd62"));
        verdict("high surrogate at the end", utf("61eda0bd"));
        verdict("low surrogate alone", utf("61edb88062"));
        verdict("surrogates in the wrong order", utf("edb880eda0bd"));

        verdict("other magic", "aced0006" + "7703000161" + TAIL);
        verdict("no blocks", MAGIC + TAIL);
        verdict("empty block only", MAGIC + "7700" + TAIL);
        verdict("half a length", MAGIC + "770100" + TAIL);
        verdict("address cut short", MAGIC + "770300026100" + TAIL);
        verdict("long block without a length", MAGIC + "7a0000");
        verdict("block longer than what follows", MAGIC + "7aff00000003000161" + TAIL);
        verdict("block of 2^31 bytes", MAGIC + "7a800000000000" + TAIL);
        verdict("block of 2^31-1 bytes, as far as needed", MAGIC + "7a7fffffff000161" + TAIL);
        verdict("bytes left in the block", MAGIC + "770400016162" + TAIL);
        verdict("block after the address", MAGIC + "7703000161" + "770162" + TAIL);
        verdict("empty block after the address", MAGIC + "7703000161" + "7700" + TAIL);
        verdict("length of eight bytes, as Java 25 writes it of 65536", MAGIC + "770a0000000000010000" + "6161" + TAIL);

        verdict("null session", MAGIC + "7703000161" + "70");
        verdict("no session", MAGIC + "7703000161");
        verdict("session cut short", record("02", "0002" + LEAST + MOST, "78", "70", LOW + "0123456789abcd"));
        verdict("session cut short, most significant half first", record("02", "0002" + MOST + LEAST, "78", "70", HIGH + "fedcba98765432"));
        verdict("a string for a session", MAGIC + "7703000161" + "740001" + "61");
        verdict("a reference for a session", MAGIC + "7703000161" + "71007e0000");
        verdict("end of block data for a session", MAGIC + "7703000161" + "78");
        verdict("a class for a session", MAGIC + "7703000161" + TAIL.substring(2));
        verdict("another class", MAGIC + "7703000161" + TAIL.replace(UUID_NAME, named("java.util.UUIE")));
        verdict("another version of the class", MAGIC + "7703000161" + TAIL.replace(UUID_UID, "bc9903f7986d8530"));
        for (String flags : new String[] {"00", "01", "04", "06", "12"}) {
            verdict("class flags " + flags, record(flags, "0002" + LEAST + MOST, "78", "70", LOW + HIGH));
        }
        verdict("fields of 32 bits", record("02", ("0002" + LEAST + MOST).replace("4a00", "4900"), "78", "70", "7654321089abcdef"));
        verdict("class left open", record("02", "0002" + LEAST + MOST, "", "70", LOW + HIGH));

        verdict("class flags 0a", record("0a", "0002" + LEAST + MOST, "78", "70", LOW + HIGH));
        verdict("class flags 22", record("22", "0002" + LEAST + MOST, "78", "70", LOW + HIGH));
        verdict("class with a write method", record("03", "0002" + LEAST + MOST, "78", "70", LOW + HIGH + "78"));
        verdict("one field", record("02", "0001" + LEAST, "78", "70", LOW));
        verdict("three fields", record("02", "0003" + LEAST + MOST + "490001" + ascii("x"), "78", "70", LOW + HIGH + "00000007"));
        verdict("annotated class", record("02", "0002" + LEAST + MOST, "77010078", "70", LOW + HIGH));
    }

    static String utf(String bytes) {
        String n = String.format("%02x", bytes.length() / 2);
        return MAGIC + "77" + String.format("%02x", 2 + bytes.length() / 2) + "00" + n + bytes + TAIL;
    }

    static String record(String flags, String fields, String end, String parent, String values) {
        return MAGIC + "7703000161" + object(flags, fields, end, parent, values);
    }

    static String object(String flags, String fields, String end, String parent, String values) {
        return "7372" + UUID_NAME + UUID_UID + flags + fields + end + parent + values;
    }

    static void verdict(String title, String record) {
        String verdict;
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(HexFormat.of().parseHex(record)))) {
            String address = in.readUTF();
            UUID session = (UUID) in.readObject();
            verdict = "\"address\":" + quoted(address) + ",\"session\":\"" + session + "\"";
        } catch (Exception e) {
            verdict = "\"refused\":\"" + e.getClass().getSimpleName() + "\"";
        }
        System.out.println("{\"title\":" + quoted(title) + ",\"hex\":\"" + record + "\"," + verdict + "}");
    }

    // ---- text

    static String hex(byte[] b) {
        return HexFormat.of().formatHex(b);
    }

    static String ascii(String s) {
        return hex(s.getBytes(StandardCharsets.US_ASCII));
    }

    static String named(String s) {
        return String.format("%04x", s.length()) + ascii(s);
    }

    static String quoted(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            b.append(c < ' ' || c > '~' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return b.append('"').toString();
    }
}
