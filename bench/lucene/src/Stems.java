import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.en.KStemFilter;
import org.apache.lucene.analysis.standard.StandardTokenizer;

/** Words in lower case as their Krovetz stems, which is what the service makes of English. */
final class Stems extends Analyzer {
    @Override
    protected TokenStreamComponents createComponents(String field) {
        Tokenizer words = new StandardTokenizer();
        return new TokenStreamComponents(words, new KStemFilter(new LowerCaseFilter(words)));
    }
}
