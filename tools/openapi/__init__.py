"""Makes the OpenAPI descriptions that the package ships: one of the ports of containers, one of the config port.

    python -m tools.openapi      writes src/paperwasp/openapi/{container,configserver}.json

    parts          parameters, answers and operations, from which the rest is put together
    schemas        the bodies of answers, by name
    documents, search, evaluation, deploy, state
                   the paths of each interface
    description    both descriptions, whole
    described      a description as tests and `tools.fuzz` use it

Names, types, bounds and defaults come from the tables that the service reads requests by, wherever there is a table.
`tests/openapi` compares the files with what is made here, the paths with what is bound, the parameters with what is
read, and the schemas with real answers.

Specification: https://spec.openapis.org/oas/v3.1.0
"""
