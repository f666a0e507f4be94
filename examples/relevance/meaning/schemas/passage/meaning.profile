rank-profile meaning {
    inputs {
        query(q) tensor<float>(x[384])
    }
    first-phase {
        expression: closeness(field, embedding)
    }
}
