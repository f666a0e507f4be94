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
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.IntField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexableField;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchNoDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.Sort;
import org.apache.lucene.search.SortedNumericSelector;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopFieldCollectorManager;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.util.QueryBuilder;

/**
 * `GET /search?kind=KIND&query=WORDS` over plain sockets, a thread for each connection: ten hits with their stored
 * fields as JSON. No more of HTTP than a client that keeps its connection needs. Kinds:
 *
 * any, all, phrase: words in the body; filtered: any of them, where the percentile is below `percent`; either: any of
 * them in title or body; sorted: any of them, by falling year.
 */
final class Serving {
    private static final String[] BODY = {"body"};
    private static final String[] BOTH = {"title", "body"};
    private static final Sort BY_YEAR =
            new Sort(IntField.newSortField("year", true, SortedNumericSelector.Type.MIN));

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
        Map<String, String> parameters = parameters(path.substring(path.indexOf('?') + 1));
        StringBuilder json = new StringBuilder(1 << 14).append("{\"hits\":[");
        StoredFields stored = searcher.storedFields();
        String between = "";
        for (ScoreDoc hit : best(parameters).scoreDocs) {
            json.append(between).append("{\"score\":").append(Float.isNaN(hit.score) ? "null" : hit.score);
            fields(json, stored.document(hit.doc));
            json.append('}');
            between = ",";
        }
        return json.append("]}").toString();
    }

    private static Map<String, String> parameters(String query) {
        Map<String, String> found = new HashMap<>();
        for (String pair : query.split("&")) {
            int middle = pair.indexOf('=');
            found.put(pair.substring(0, middle), URLDecoder.decode(pair.substring(middle + 1), StandardCharsets.UTF_8));
        }
        return found;
    }

    private TopDocs best(Map<String, String> parameters) throws IOException {
        String words = parameters.get("query");
        String kind = parameters.get("kind");
        return switch (kind) {
            case "any" -> Answering.best(searcher, joined(words, Occur.SHOULD, BODY));
            case "all" -> Answering.best(searcher, joined(words, Occur.MUST, BODY));
            case "either" -> Answering.best(searcher, joined(words, Occur.SHOULD, BOTH));
            case "phrase" -> Answering.best(searcher, phrase(words));
            case "filtered" -> Answering.best(searcher, filtered(words, Integer.parseInt(parameters.get("percent"))));
            case "sorted" -> searcher.search(
                    joined(words, Occur.SHOULD, BODY),
                    new TopFieldCollectorManager(BY_YEAR, Answering.HITS, Answering.HITS));
            default -> throw new IllegalArgumentException("no kind of query " + kind);
        };
    }

    /** Any or all of the words; of one that the analyzer splits, such as "two-dimensional", all parts, as ours does. */
    private Query joined(String words, Occur occur, String[] fields) {
        QueryBuilder builder = new QueryBuilder(analyzer);
        BooleanQuery.Builder joined = new BooleanQuery.Builder();
        for (String word : words.split("\\s+")) {
            for (String field : fields) {
                Query parts = builder.createBooleanQuery(field, word, Occur.MUST);
                if (parts != null) {
                    joined.add(parts, occur);
                }
            }
        }
        BooleanQuery query = joined.build();
        return query.clauses().isEmpty() ? new MatchNoDocsQuery() : query;
    }

    private Query phrase(String words) {
        Query query = new QueryBuilder(analyzer).createPhraseQuery("body", words);
        return query == null ? new MatchNoDocsQuery() : query;
    }

    private Query filtered(String words, int percent) {
        return new BooleanQuery.Builder()
                .add(joined(words, Occur.SHOULD, BODY), Occur.MUST)
                .add(IntField.newRangeQuery("percentile", 0, percent - 1), Occur.FILTER)
                .build();
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
