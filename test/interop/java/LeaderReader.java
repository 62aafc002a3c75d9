import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.highavailability.HighAvailabilityServices;
import org.apache.flink.runtime.highavailability.HighAvailabilityServicesUtils;
import org.apache.flink.runtime.leaderretrieval.LeaderRetrievalListener;
import org.apache.flink.runtime.leaderretrieval.LeaderRetrievalService;

/**
 * Tells which leaders a process of Flink is told of, until standard input ends. It finds them as a TaskManager does: by
 * the high-availability services that its configuration asks for. The arguments are the id of a job and that
 * configuration, key=value each.
 */
final class LeaderReader {
    private LeaderReader() {}

    public static void main(String[] args) throws Exception {
        Thread input = Input.watch();
        Configuration configuration = new Configuration();
        for (int i = 1; i < args.length; i++) {
            String[] option = args[i].split("=", 2);
            configuration.setString(option[0], option[1]);
        }
        ExecutorService executor = Executors.newCachedThreadPool();
        try (HighAvailabilityServices services = HighAvailabilityServicesUtils.createAvailableOrEmbeddedServices(
                configuration, executor, cause -> fail("the process", cause))) {
            read(retrievers(services, JobID.fromHexString(args[0])), input);
        }
        executor.shutdown();
    }

    /** By component, as journald calls it. */
    private static Map<String, LeaderRetrievalService> retrievers(HighAvailabilityServices services, JobID job) {
        Map<String, LeaderRetrievalService> retrievers = new LinkedHashMap<>();
        retrievers.put("resourcemanager", services.getResourceManagerLeaderRetriever());
        retrievers.put("dispatcher", services.getDispatcherLeaderRetriever());
        retrievers.put("restserver", services.getClusterRestEndpointLeaderRetriever());
        retrievers.put("job-" + job, services.getJobManagerLeaderRetriever(job, null));
        return retrievers;
    }

    private static void read(Map<String, LeaderRetrievalService> retrievers, Thread input) throws Exception {
        for (Map.Entry<String, LeaderRetrievalService> retriever : retrievers.entrySet()) {
            retriever.getValue().start(new Listener(retriever.getKey()));
        }
        new Line().with("ready", true).print();
        input.join();
        for (LeaderRetrievalService retriever : retrievers.values()) {
            retriever.stop();
        }
    }

    private static void fail(String reader, Throwable cause) {
        new Line().with("of", reader).with("error", cause).print();
        cause.printStackTrace();
    }

    private static final class Listener implements LeaderRetrievalListener {
        private final String component;

        Listener(String component) {
            this.component = component;
        }

        @Override
        public void notifyLeaderAddress(String address, UUID session) {
            new Line().with("of", component).with("address", address).with("session", session).print();
        }

        @Override
        public void handleError(Exception cause) {
            fail(component, cause);
        }
    }
}
