/** What the tests are told: a line of JSON on standard output. */
final class Line {
    private final StringBuilder text = new StringBuilder("{");

    /** The line has this field too; a value is null, a Boolean, a Number, or whatever text it has. */
    Line with(String name, Object value) {
        text.append(text.length() > 1 ? "," : "").append(quoted(name)).append(':');
        text.append(value == null || value instanceof Boolean || value instanceof Number ? value : quoted(value.toString()));
        return this;
    }

    /** Lines of several threads stay whole. */
    void print() {
        synchronized (System.out) {
            System.out.println(text + "}");
            System.out.flush();
        }
    }

    /** ASCII, so that it is the same in every locale. */
    private static String quoted(String value) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : value.toCharArray()) {
            if (c < ' ' || c > '~' || c == '"' || c == '\\') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
