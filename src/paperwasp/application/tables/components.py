"""Components: those of Vespa's built-in types, and any Java class."""

from typing import Final

COMPONENTS: Final = """
model  used model-id path url secret-ref
onnx-execution  used
    onnx-execution-mode?  used = parallel|sequential
    onnx-interop-threads?  used = integer
    onnx-intraop-threads?  used = integer
    onnx-gpu-device?  used = integer
    onnx-optimize-model?  used = boolean
    batching?  used max-size!:integer max-delay!:seconds
    concurrency?  used type:absolute|relative = number
    model-config-override?  used = text
transformer  used id!:id type!
    transformer-model@model!
    max-tokens?  used = positive
    transformer-input-ids?  used = text
    transformer-attention-mask?  used = text
    transformer-token-type-ids?  used = text
    transformer-output?  used = text
    config@config
    component@component
    +onnx-execution
prepending  used
    prepend?  used
        query?  used = text
        document?  used = text
remote-embedder  used id!:id type!
    model!  used = text
    endpoint?  used = text
    batching?  used max-size!:integer max-delay!:seconds
    config@read-config
    component@component
component  used
    +java
    component@component
component/hugging-face-embedder  used
    +transformer
    tokenizer-model@model?
    normalize?  used = boolean
    pooling-strategy?  used = cls|last|mean|none
    +prepending
component/hugging-face-tokenizer  used id!:id type!
    model+  used language model-id path url secret-ref
    config@config
    component@component
component/bert-embedder  used
    +transformer
    tokenizer-vocab@model!
    transformer-start-sequence-token?  used = integer
    transformer-end-sequence-token?  used = integer
    pooling-strategy?  used = cls|last|mean|none
component/colbert-embedder  used
    +transformer
    tokenizer-model@model?
    max-query-tokens?  used = positive
    max-document-tokens?  used = positive
    transformer-mask-token?  used = integer
    transformer-pad-token?  used = integer
    transformer-start-sequence-token?  used = integer
    transformer-end-sequence-token?  used = integer
    query-token-id?  used = integer
    document-token-id?  used = integer
    attend-to-expansion-tokens?  used = boolean
component/splade-embedder  used
    +transformer
    tokenizer-model@model?
    term-score-threshold?  used = number
component/voyage-ai-embedder  used
    +remote-embedder
    api-key-secret-ref!  used = text
    dimensions!  used = 256|512|1024|1536|2048
    quantization?  used = auto|float|int8|binary
    truncate?  used = boolean
component/openai-embedder  used
    +remote-embedder
    api-key-secret-ref?  used = text
    dimensions!  used = positive
    +prepending
component/mistral-embedder  used
    +remote-embedder
    api-key-secret-ref!  used = text
    dimensions!  used = positive
    quantization?  used = auto|float|int8|binary
component/hugging-face-tei-embedder  used id!:id type!
    endpoint?  used = text
    api-key-secret-ref?  used = text
    dimensions?  used = positive
    normalize?  used = boolean
    truncate?  used = boolean
    truncation-direction?  used = left|right
    prompt-name?  used = text
    query-prompt-name?  used = text
    document-prompt-name?  used = text
    max-retries?  used = count
    timeout?  used = positive
    batching?  used max-size!:integer max-delay!:seconds
    +prepending
    config@read-config
    component@component
"""
