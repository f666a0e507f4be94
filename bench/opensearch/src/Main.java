import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.settings.Settings;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/**
 * One node of OpenSearch with its own HTTP server, on free ports of the loopback interface. It keeps its index in the
 * directory that is given, and stops at the end of the process.
 */
final class Main extends Node {
    private Main(Settings settings) {
        super(
                InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "bench"),
                List.of(Netty4Plugin.class, StemsPlugin.class),
                false);
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]).toAbsolutePath();
        Settings settings = Settings.builder()
                .put("path.home", home.toString())
                .put("cluster.name", "bench")
                .put("node.name", "bench")
                .put("discovery.type", "single-node")
                .put("network.host", "127.0.0.1")
                .put("http.port", "0")
                .put("transport.port", "0")
                .put("http.type", "netty4")
                .put("transport.type", "netty4")
                .put("cluster.routing.allocation.disk.threshold_enabled", false)
                .build();
        Main node = new Main(settings);
        node.start();
        Runtime.getRuntime().addShutdownHook(new Thread(node::closeQuietly));
        int port = node.injector()
                .getInstance(HttpServerTransport.class)
                .boundAddress()
                .publishAddress()
                .getPort();
        System.out.println("ready on http://127.0.0.1:" + port);
        new CountDownLatch(1).await(); // its own threads do not keep the process alive
    }

    private void closeQuietly() {
        try {
            close();
        } catch (java.io.IOException error) {
            System.err.println(error);
        }
    }
}
