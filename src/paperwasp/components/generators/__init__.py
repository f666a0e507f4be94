"""Generators: components of services.xml that make values of fields by language models over HTTP.

    language_models   clients of chat completions, as OpenAI serves them
    field_generator   prompt → language model → value of the field's type
    json_schema       the JSON schema of a type, which the model's answer follows
    config            the settings of a `config` element, checked
    registry          from the components of an application to its generators

Vespa: https://docs.vespa.ai/en/rag/document-enrichment.html, https://docs.vespa.ai/en/rag/external-llms.html
"""
