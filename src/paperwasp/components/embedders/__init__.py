"""Embedders: components of services.xml that make tensors of text, for fields when documents are fed and in queries.

    registry      type of a component → the class that runs it; what is wrong with a component, at its deployment
    base          the base of all embedders: settings, prepending, remembering by text, errors
    batches       runs of a model on the texts of many threads
    model_files   the files of models and tokenizers that components name

A type of embedder is one class, which registers itself; `vectors` and `http_services` have several that differ in
little. Those that run a model in this process share `text_tokenizer` (text → numbers of tokens), `transformer` (tokens
→ the model's output) and `vectors` (output → one vector → tensor of the type that is wanted); those that are services
elsewhere share `http_embedder`, with `http_batches` (texts → a request) and `sent_vectors` (an answer → tensors).
Embedding takes long and is never done on an event loop.

Vespa: https://docs.vespa.ai/en/rag/embedding.html, https://docs.vespa.ai/en/reference/rag/embedding.html
"""
