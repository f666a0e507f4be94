# BM25 as it is by default: k1 1.2, b 0.75.
rank-profile bm25 {
    first-phase {
        expression: bm25(all)
    }
}
