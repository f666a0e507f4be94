# The profile that is recommended: BM25 and the closeness of meaning, each brought to 0 to 1, count the same.
rank-profile both inherits meaning {

    rank-properties {
        bm25(all).k1: 0.9
        bm25(all).b: 0.4
    }

    function words() {
        expression: bm25(all)
    }

    function meaning() {
        expression: closeness(field, embedding)
    }

    first-phase {
        expression: words
    }

    global-phase {
        expression: normalize_linear(words) + normalize_linear(meaning)
        rerank-count: 1000
    }
}
