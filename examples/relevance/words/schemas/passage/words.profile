# BM25 with less weight on length, and the best of it again by how the words stand together.
rank-profile words {

    # What Anserini takes for collections that it does not know, BEIR among them.
    rank-properties {
        bm25(all).k1: 0.9
        bm25(all).b: 0.4
    }

    first-phase {
        expression: bm25(all)
    }

    second-phase {
        expression: bm25(all) * (1 + fieldMatch(all))
        rerank-count: 100
    }
}
