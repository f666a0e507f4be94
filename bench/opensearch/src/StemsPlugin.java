import java.util.Map;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.en.KStemFilter;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.IndexSettings;
import org.opensearch.index.analysis.AbstractTokenFilterFactory;
import org.opensearch.index.analysis.TokenFilterFactory;
import org.opensearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.opensearch.plugins.AnalysisPlugin;
import org.opensearch.plugins.Plugin;

/** The token filter `kstem`, which is what the service makes of English; OpenSearch has it in a module of its own. */
public final class StemsPlugin extends Plugin implements AnalysisPlugin {
    @Override
    public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
        return Map.of("kstem", Stems::new);
    }

    private static final class Stems extends AbstractTokenFilterFactory {
        Stems(IndexSettings index, Environment environment, String name, Settings settings) {
            super(index, name, settings);
        }

        @Override
        public TokenStream create(TokenStream words) {
            return new KStemFilter(words);
        }
    }
}
