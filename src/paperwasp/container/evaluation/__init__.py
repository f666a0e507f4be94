"""The Model-evaluation API of a container: `/model-evaluation/v1`.

    handler    a request → a list, what there is to know of a model, or an evaluation
    runs       evaluations that wait for a thread, as one run of the model where it takes several
    rendering  tensors in the forms of `format.tensors`

Vespa: https://docs.vespa.ai/en/ranking/stateless-model-evaluation.html
"""
