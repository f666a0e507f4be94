import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexableField;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.util.QueryBuilder;

/**
 * `GET /search?query=WORDS` over plain sockets, a thread for each connection: any of the words in the body, ten hits
 * with their stored fields as JSON. No more of HTTP than a client that keeps its connection needs.
 */
final class Serving {
    private static final String PARAMETER = "query=";

    private final IndexSearcher searcher;
    private final Stems analyzer = new Stems();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    Serving(Path directory) throws IOException {
        searcher = Answering.plain(DirectoryReader.open(MMapDirectory.open(directory)));
    }

    void run() throws IOException {
        try (ServerSocket server = new ServerSocket(0, 64, InetAddress.getLoopbackAddress())) {
            System.out.println("ready on http://127.0.0.1:" + server.getLocalPort());
            while (true) {
                Socket connection = server.accept();
                threads.execute(() -> serve(connection));
            }
        }
    }

    private void serve(Socket connection) {
        try (connection) {
            connection.setTcpNoDelay(true);
            BufferedReader lines =
                    new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.ISO_8859_1));
            for (String request = lines.readLine(); request != null; request = lines.readLine()) {
                while (!lines.readLine().isEmpty()) {}
                send(connection.getOutputStream(), answer(request.split(" ")[1]));
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void send(OutputStream output, String json) throws IOException {
        byte[] body = json.getBytes(StandardCharsets.UTF_8);
        String lines = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + body.length;
        byte[] head = (lines + "\r\n\r\n").getBytes(StandardCharsets.ISO_8859_1);
        byte[] whole = new byte[head.length + body.length];
        System.arraycopy(head, 0, whole, 0, head.length);
        System.arraycopy(body, 0, whole, head.length, body.length);
        output.write(whole);
    }

    private String answer(String path) throws IOException {
        String encoded = path.substring(path.indexOf(PARAMETER) + PARAMETER.length());
        String words = URLDecoder.decode(encoded, StandardCharsets.UTF_8);
        BooleanQuery query = any(words);
        StringBuilder json = new StringBuilder(1 << 14).append("{\"hits\":[");
        if (!query.clauses().isEmpty()) {
            StoredFields stored = searcher.storedFields();
            String between = "";
            for (ScoreDoc hit : Answering.best(searcher, query).scoreDocs) {
                json.append(between).append("{\"score\":").append(hit.score);
                fields(json, stored.document(hit.doc));
                json.append('}');
                between = ",";
            }
        }
        return json.append("]}").toString();
    }

    /** Any of the words; of one that the analyzer splits, such as "two-dimensional", all parts: as ours reads them. */
    private BooleanQuery any(String words) {
        QueryBuilder builder = new QueryBuilder(analyzer);
        BooleanQuery.Builder any = new BooleanQuery.Builder();
        for (String word : words.split("\\s+")) {
            Query parts = builder.createBooleanQuery("body", word, Occur.MUST);
            if (parts != null) {
                any.add(parts, Occur.SHOULD);
            }
        }
        return any.build();
    }

    private static void fields(StringBuilder json, Document document) {
        for (IndexableField field : document) {
            json.append(",\"").append(field.name()).append("\":");
            Number number = field.numericValue();
            if (number != null) {
                json.append(number);
            } else {
                quote(json, field.stringValue());
            }
        }
    }

    private static void quote(StringBuilder json, String text) {
        json.append('"');
        for (int i = 0; i < text.length(); i++) {
            char letter = text.charAt(i);
            if (letter == '"' || letter == '\\') {
                json.append('\\').append(letter);
            } else if (letter < ' ') {
                json.append(String.format("\\u%04x", (int) letter));
            } else {
                json.append(letter);
            }
        }
        json.append('"');
    }
}
