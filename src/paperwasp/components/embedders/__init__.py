"""Embedders: components of services.xml that make tensors of text, for fields when documents are fed and in queries.

    registry      type of a component → the class that runs it; what is wrong with a component, at its deployment
    base          what all embedders share: prepending, remembering by text, batches, errors
    batches       texts of all threads that wait, run together; queries apart from documents
    settings      the settings of a component with their defaults, and its model files (`model_files`)

A type of embedder is one module, which registers its class. Those that run a model in this process share
`text_tokenizer` (text → numbers of tokens), `transformer` (tokens → the model's output), `pooling` (output → one
vector) and `quantization` (vector → tensor of the type that is wanted). Embedding takes long and is never done on an
event loop.

Vespa: https://docs.vespa.ai/en/rag/embedding.html, https://docs.vespa.ai/en/reference/rag/embedding.html
"""
