import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field.Store;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * Ranks a test collection by BM25: any word of a query matches. Standard input has the number of documents (a big-endian
 * int), id and text of each, and the same of the queries; each text comes as the length of its UTF-8 and that. Standard
 * output has a line for each hit: query, document and score, between tabs.
 */
final class Evaluating {
    private static final String TEXT = "text";

    private Evaluating() {}

    /** `kind` is krovetz, or porter, which leaves stop words out. */
    static void run(String kind, int hits, InputStream input, PrintStream output) throws IOException {
        Analyzer analyzer =
                switch (kind) {
                    case "krovetz" -> new Stems();
                    case "porter" -> new EnglishAnalyzer();
                    default -> throw new IllegalArgumentException("no analyzer " + kind);
                };
        try (ByteBuffersDirectory files = new ByteBuffersDirectory();
                DataInputStream values = new DataInputStream(new BufferedInputStream(input, 1 << 20))) {
            fill(files, analyzer, values);
            try (DirectoryReader reader = DirectoryReader.open(files)) {
                IndexSearcher searcher = new IndexSearcher(reader);
                searcher.setSimilarity(Indexing.BM25);
                int queries = values.readInt();
                for (int number = 0; number < queries; number++) {
                    String id = next(values);
                    answer(searcher, analyzer, id, next(values), hits, output);
                }
            }
        }
        output.flush();
    }

    private static void fill(ByteBuffersDirectory files, Analyzer analyzer, DataInputStream values) throws IOException {
        IndexWriterConfig configuration = new IndexWriterConfig(analyzer).setSimilarity(Indexing.BM25);
        try (IndexWriter writer = new IndexWriter(files, configuration)) {
            int documents = values.readInt();
            for (int number = 0; number < documents; number++) {
                Document document = new Document();
                document.add(new StoredField("id", next(values)));
                document.add(new TextField(TEXT, next(values), Store.NO));
                writer.addDocument(document);
            }
            writer.forceMerge(1);
        }
    }

    private static void answer(
            IndexSearcher searcher, Analyzer analyzer, String id, String text, int hits, PrintStream output)
            throws IOException {
        BooleanQuery.Builder query = new BooleanQuery.Builder();
        try (TokenStream words = analyzer.tokenStream(TEXT, text)) {
            CharTermAttribute word = words.addAttribute(CharTermAttribute.class);
            words.reset();
            while (words.incrementToken()) {
                query.add(new TermQuery(new Term(TEXT, word.toString())), Occur.SHOULD);
            }
            words.end();
        }
        StoredFields fields = searcher.storedFields();
        for (ScoreDoc hit : searcher.search(query.build(), hits).scoreDocs) {
            output.println(id + "\t" + fields.document(hit.doc).get("id") + "\t" + hit.score);
        }
    }

    private static String next(DataInputStream values) throws IOException {
        byte[] bytes = new byte[values.readInt()];
        values.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
