import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.document.IntField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.store.MMapDirectory;

/**
 * Answers a query a line: its kind, a percentage, and words. An answer is a line too: the CPU time of the search in
 * nanoseconds, from a query object to ten hits, then score and document of each.
 */
final class Answering {
    static final int HITS = 10;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final IndexSearcher searcher;
    /** Keeps the bits of filters that it has met some times. */
    private final IndexSearcher caching;

    Answering(Path directory) throws IOException {
        DirectoryReader reader = DirectoryReader.open(MMapDirectory.open(directory));
        caching = new IndexSearcher(reader);
        caching.setSimilarity(Indexing.BM25);
        searcher = plain(reader);
    }

    /** Nothing is kept from one query to the next. */
    static IndexSearcher plain(DirectoryReader reader) {
        IndexSearcher searcher = new IndexSearcher(reader);
        searcher.setSimilarity(Indexing.BM25);
        searcher.setQueryCache(null);
        return searcher;
    }

    /** The ten best, with no more hits counted than that takes. */
    static TopDocs best(IndexSearcher searcher, Query query) throws IOException {
        return searcher.search(query, new TopScoreDocCollectorManager(HITS, HITS));
    }

    void run(InputStream input, PrintStream output) throws IOException {
        output.println("segments " + searcher.getIndexReader().leaves().size());
        BufferedReader lines = new BufferedReader(new InputStreamReader(input));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            output.println(answer(line.split(" ")));
        }
    }

    private String answer(String[] parts) throws IOException {
        IndexSearcher chosen = parts[0].equals("masked") ? caching : searcher;
        Query query = query(parts[0], Integer.parseInt(parts[1]), Arrays.asList(parts).subList(2, parts.length));
        long start = THREADS.getCurrentThreadCpuTime();
        TopDocs found = best(chosen, query);
        StringBuilder text = new StringBuilder().append(THREADS.getCurrentThreadCpuTime() - start);
        for (ScoreDoc hit : found.scoreDocs) {
            text.append(' ').append(hit.score).append(' ').append(hit.doc);
        }
        return text.toString();
    }

    private static Query query(String kind, int percent, List<String> words) {
        return switch (kind) {
            case "any_of" -> joined(words, Occur.SHOULD);
            case "all_of" -> joined(words, Occur.MUST);
            case "phrase" -> new PhraseQuery("text", words.toArray(String[]::new));
            case "filtered", "masked" -> new BooleanQuery.Builder()
                    .add(joined(words, Occur.SHOULD), Occur.MUST)
                    .add(IntField.newRangeQuery("percentile", 0, percent - 1), Occur.FILTER)
                    .build();
            default -> throw new IllegalArgumentException("no kind of query " + kind);
        };
    }

    private static Query joined(List<String> words, Occur occur) {
        if (words.size() == 1) {
            return new TermQuery(new Term("text", words.get(0)));
        }
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        words.forEach(word -> all.add(new TermQuery(new Term("text", word)), occur));
        return all.build();
    }
}
