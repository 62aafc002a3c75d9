import java.io.IOException;
import java.io.UncheckedIOException;

/** Standard input: the test holds its other end, and lets go of it when the program has to end. */
final class Input {
    private static final long GRACE_MILLIS = 30_000;

    private Input() {}

    /** The thread ends with standard input. Some time after that the process is gone, whatever it is waiting for. */
    static Thread watch() {
        Thread input = daemon(Input::drain);
        daemon(() -> {
            try {
                input.join();
                Thread.sleep(GRACE_MILLIS);
            } catch (InterruptedException e) {
                // It ends a little sooner.
            }
            Runtime.getRuntime().halt(1);
        });
        return input;
    }

    private static void drain() {
        try {
            System.in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Thread daemon(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
