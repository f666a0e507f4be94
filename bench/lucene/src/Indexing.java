import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field.Store;
import org.apache.lucene.document.IntField;
import org.apache.lucene.document.KeywordField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.FSDirectory;

/**
 * Fills an index of one segment, its documents in the order given. Each value comes as the length of its UTF-8 (a
 * big-endian int) and that.
 */
final class Indexing {
    static final BM25Similarity BM25 = new BM25Similarity(1.2f, 0.75f);
    private static final double BUFFER_MB = 1000;

    private Indexing() {}

    private interface Reader {
        /** The next document; an EOFException after the last one. */
        Document read(DataInputStream values) throws IOException;
    }

    /** Documents of words between spaces, and a number from 0 to 99 each. */
    static void tokens(Path directory, InputStream input) throws IOException {
        fill(directory, input, new WhitespaceAnalyzer(), values -> {
            Document document = new Document();
            document.add(new TextField("text", next(values), Store.NO));
            document.add(new IntField("percentile", Integer.parseInt(next(values)), Store.NO));
            return document;
        });
    }

    /** What `bench/application` has, in the order id, title, body, category, year, percentile. */
    static void passages(Path directory, InputStream input) throws IOException {
        fill(directory, input, new Stems(), values -> {
            Document document = new Document();
            document.add(new StoredField("id", next(values)));
            document.add(new TextField("title", next(values), Store.YES));
            document.add(new TextField("body", next(values), Store.YES));
            document.add(new KeywordField("category", next(values), Store.YES));
            document.add(new IntField("year", Integer.parseInt(next(values)), Store.YES));
            document.add(new IntField("percentile", Integer.parseInt(next(values)), Store.NO));
            return document;
        });
    }

    private static void fill(Path directory, InputStream input, Analyzer analyzer, Reader reader) throws IOException {
        IndexWriterConfig configuration = new IndexWriterConfig(analyzer)
                .setSimilarity(BM25)
                .setMergePolicy(new LogDocMergePolicy())
                .setRAMBufferSizeMB(BUFFER_MB);
        try (FSDirectory files = FSDirectory.open(directory);
                IndexWriter writer = new IndexWriter(files, configuration);
                DataInputStream values = new DataInputStream(new BufferedInputStream(input, 1 << 20))) {
            while (true) {
                Document document;
                try {
                    document = reader.read(values);
                } catch (EOFException end) {
                    break;
                }
                writer.addDocument(document);
            }
            writer.forceMerge(1);
            writer.commit();
        }
    }

    private static String next(DataInputStream values) throws IOException {
        byte[] bytes = new byte[values.readInt()];
        values.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
