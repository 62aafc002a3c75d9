import java.util.Collection;
import java.util.Objects;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Asks a latch who leads and who takes part, in turn and as fast as it can, until standard input ends: as Druid's
 * processes do, with a latch that was never started. It tells every answer that is not the one before, the first being
 * that nobody leads, and at the end how often it asked. The first exception ends it. The arguments are the servers, the
 * latch's path, and what to call it.
 */
final class LatchReader {
    private final LeaderLatch latch;
    private final String name;
    private String last; // null: nobody leads

    private LatchReader(LeaderLatch latch, String name) {
        this.latch = latch;
        this.name = name;
    }

    public static void main(String[] args) throws Exception {
        Thread input = Input.watch();
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new ExponentialBackoffRetry(100, 10))) {
            client.start();
            client.blockUntilConnected();
            new LatchReader(new LeaderLatch(client, args[1]), args[2]).read(input);
        }
    }

    private void read(Thread input) throws Exception {
        ask();
        new Line().with("ready", true).print();
        long reads = 2;
        for (; input.isAlive(); reads += 2) {
            ask();
        }
        new Line().with("reads", reads).print();
    }

    private void ask() throws Exception {
        tell(leader(latch.getLeader()));
        tell(leader(latch.getParticipants()));
    }

    private void tell(String leader) {
        if (!Objects.equals(leader, last)) {
            new Line().with("of", name).with("address", leader).print();
        }
        last = leader;
    }

    /** Where nobody leads, Curator makes a participant up. */
    private static String leader(Participant participant) {
        return participant.isLeader() ? participant.getId() : null;
    }

    /** Nobody takes part who does not lead; where somebody does, the answer looks like no id. */
    private static String leader(Collection<Participant> participants) {
        return participants.isEmpty() ? null : participants.stream()
                .map(p -> p.isLeader() ? p.getId() : p.getId() + " takes part")
                .collect(Collectors.joining(" and "));
    }
}
