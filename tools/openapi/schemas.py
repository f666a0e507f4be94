"""The bodies of answers, by name: what `$ref` in the descriptions leads to."""

from __future__ import annotations

from typing import Final

from tools.openapi.parts import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    STRING,
    STRINGS,
    Json,
    enum,
    list_of,
    map_of,
    open_record,
    record,
    ref,
)

_TEXT_OR_NUMBER: Final[Json] = {"type": ["number", "string"]}
"""A number; as text where JSON has none for it: NaN and infinities."""
_ANY_OBJECT: Final[Json] = {"type": "object"}
_MESSAGES: Final = list_of({"type": "object", "description": "A `message`, or a `fork` of several traces."})
_METRICS: Final = record(
    ("values",),
    snapshot=record(("from", "to"), **{"from": NUMBER, "to": NUMBER}),
    values=list_of(record(("name", "values"), name=STRING, values=map_of(NUMBER), dimensions=map_of(STRING))),
)
_STATUS: Final = record(("code",), code=enum("up", "down", "initializing"), message=STRING)
_GENERATIONS: Final[dict[str, Json]] = {"currentGeneration": INTEGER, "wantedGeneration": INTEGER, "converged": BOOLEAN}

OF_BOTH: Final[dict[str, Json]] = {
    "Resources": record(("resources",), resources=list_of(record(("url",), url=STRING))),
    "Health": record(("time", "status", "metrics"), time=INTEGER, status=_STATUS, metrics=_METRICS),
    "Version": record(("version",), version=STRING),
    "Handlers": record(("handlers",), handlers=list_of(_ANY_OBJECT)),
    "ApplicationStatus": open_record(("application",), application=_ANY_OBJECT),
    "Nodes": record(
        ("nodes",),
        nodes=list_of(
            record(("hostname", "role", "services"), hostname=STRING, role=STRING, services=list_of(_ANY_OBJECT))
        ),
    ),
    "Services": record(("services",), services=list_of(_ANY_OBJECT)),
    "Description": open_record(("openapi", "info", "paths"), openapi=STRING, info=_ANY_OBJECT, paths=_ANY_OBJECT),
}

CONTAINER: Final[dict[str, Json]] = {
    **OF_BOTH,
    "Error": record(message=STRING, error=STRING),
    "EvaluationError": record(("error",), error=STRING),
    "Fields": {"type": "object", "description": "Field → value, as the schema types it."},
    "DocumentError": record(
        ("pathId", "message"), pathId=STRING, id=STRING, trace=_MESSAGES, message=STRING, documentCount=COUNT
    ),
    "Document": record(("pathId", "id"), pathId=STRING, id=STRING, trace=_MESSAGES, fields=ref("Fields")),
    "DocumentAnswer": record(("pathId", "id"), pathId=STRING, id=STRING, trace=_MESSAGES),
    "Put": open_record(
        ("fields",),
        fields=ref("Fields"),
        condition={"type": ["string", "null"]},
        create={"type": ["boolean", "null"]},
    ),
    "FieldUpdates": {
        "type": "object",
        "description": "Field, or path to a place in one → the operations on it.",
        "additionalProperties": {
            "type": "object",
            "description": "Operation → its value: assign, add, remove, increment, decrement, multiply, divide, match,"
            " modify.",
        },
    },
    "Update": open_record(
        ("fields",),
        fields=ref("FieldUpdates"),
        condition={"type": ["string", "null"]},
        create={"type": ["boolean", "null"]},
    ),
    "VisitedDocument": {
        "oneOf": [
            record(("id", "fields"), id=STRING, fields=ref("Fields")),
            record(("remove",), remove=STRING),
        ]
    },
    "Visit": record(
        ("pathId", "documents", "documentCount"),
        pathId=STRING,
        documents=list_of(ref("VisitedDocument")),
        documentCount=COUNT,
        trace=_MESSAGES,
        message=STRING,
        continuation=STRING,
    ),
    "Bulk": record(
        ("pathId", "documentCount"),
        pathId=STRING,
        documentCount=COUNT,
        trace=_MESSAGES,
        message=STRING,
        continuation=STRING,
    ),
    "VisitLine": {
        "oneOf": [
            record(("put", "id", "fields"), put=STRING, id=STRING, fields=ref("Fields")),
            record(("remove",), remove=STRING),
            record(
                ("continuation",),
                continuation=record(("percentFinished",), token=STRING, percentFinished={**NUMBER, "maximum": 100}),
            ),
            record(("sessionTrace",), sessionTrace=record(("trace",), trace=_MESSAGES)),
            record(("message",), message=record(("text", "severity"), text=STRING, severity=enum("error"))),
            record(("sessionStats",), sessionStats=record(("documentCount",), documentCount=COUNT)),
        ]
    },
    "SearchResult": record(
        ("root",),
        trace=record(("children",), children=list_of(_ANY_OBJECT)),
        timing=map_of(NUMBER),
        root=ref("Root"),
    ),
    "Root": record(
        ("id", "relevance", "fields"),
        id={"const": "toplevel"},
        relevance=NUMBER,
        fields=record(("totalCount",), totalCount=COUNT),
        coverage=ref("Coverage"),
        continuation=record(("next",), next=STRING),
        errors=list_of(ref("SearchError")),
        children=list_of({"oneOf": [ref("Hit"), ref("RootGroup")]}),
    ),
    "Coverage": record(
        ("coverage", "documents", "full", "nodes", "results", "resultsFull"),
        coverage={**COUNT, "maximum": 100},
        documents=COUNT,
        full=BOOLEAN,
        nodes=COUNT,
        results=COUNT,
        resultsFull=COUNT,
        degraded=map_of(BOOLEAN),
    ),
    "SearchError": record(("code", "summary", "message"), code=COUNT, summary=STRING, source=STRING, message=STRING),
    "Hit": record(
        ("id", "relevance", "source"),
        id={"type": "string", "not": {"pattern": "^group:root:"}},
        relevance=_TEXT_OR_NUMBER,
        source=STRING,
        fields=ref("Fields"),
        explanation=_ANY_OBJECT,
    ),
    "RootGroup": record(
        ("id", "relevance", "continuation"),
        id={"type": "string", "pattern": "^group:root:[0-9]+$"},
        relevance=_TEXT_OR_NUMBER,
        continuation=map_of(STRING),
        fields=ref("Fields"),
        children=list_of({"oneOf": [ref("GroupList"), ref("HitList")]}),
    ),
    "GroupList": record(
        ("id", "relevance", "label"),
        id={"type": "string", "pattern": "^grouplist:"},
        relevance=_TEXT_OR_NUMBER,
        label=STRING,
        continuation=map_of(STRING),
        children=list_of(ref("Group")),
    ),
    "Group": record(
        ("id", "relevance"),
        id={"type": "string", "pattern": "^group:"},
        relevance=_TEXT_OR_NUMBER,
        value=STRING,
        limits=record(("from", "to"), **{"from": STRING, "to": STRING}),
        continuation=map_of(STRING),
        fields=ref("Fields"),
        children=list_of({"oneOf": [ref("GroupList"), ref("HitList")]}),
    ),
    "HitList": record(
        ("id", "relevance", "label"),
        id={"type": "string", "pattern": "^hitlist:"},
        relevance=_TEXT_OR_NUMBER,
        label=STRING,
        continuation=map_of(STRING),
        children=list_of(ref("Hit")),
    ),
    "Models": map_of({"type": "string", "description": "The address of what there is to know of the model."}),
    "Model": record(("model", "functions"), model=STRING, functions=list_of(ref("Function"))),
    "Function": record(
        ("function", "info", "eval", "arguments"),
        model=STRING,
        function=STRING,
        info=STRING,
        eval=STRING,
        arguments=list_of(record(("name", "type"), name=STRING, type=STRING)),
    ),
    "ModelOrFunction": {"oneOf": [ref("Model"), ref("Function")]},
    "Tensor": {
        "description": "A tensor in the form that `format.tensors` asks for.",
        "anyOf": [
            record(
                type=STRING,
                cells={"type": ["array", "object"]},
                values={"type": ["array", "object", "number"]},
                blocks={"type": ["array", "object"]},
            ),
            {"type": ["object", "array", "number", "string", "null"]},
        ],
    },
    "Config": record(
        ("config",),
        config=open_record(("generation", "wantedGeneration"), generation=COUNT, wantedGeneration=COUNT),
    ),
}

CONFIG_SERVER: Final[dict[str, Json]] = {
    **OF_BOTH,
    "Error": record(("error-code", "message"), **{"error-code": STRING, "message": STRING}),
    "Message": record(("message",), message=STRING),
    "Tenants": record(("tenants",), tenants=STRINGS),
    "Addresses": STRINGS,
    "LogLine": record(
        ("time", "level", "message"),
        time=COUNT,
        level=enum("ERROR", "WARNING", "INFO"),
        message=STRING,
        applicationPackage=BOOLEAN,
    ),
    "Session": record(
        ("log", "tenant", "session-id", "prepared", "content", "message"),
        **{
            "log": list_of(ref("LogLine")),
            "tenant": STRING,
            "session-id": ref("SessionId"),
            "prepared": STRING,
            "content": STRING,
            "message": STRING,
        },
    ),
    "SessionId": {"type": "string", "pattern": "^[0-9]+$"},
    "Actions": record(
        ("restart", "refeed", "reindex"),
        restart=list_of(_ANY_OBJECT),
        refeed=list_of(ref("TypeAction")),
        reindex=list_of(ref("TypeAction")),
    ),
    "TypeAction": record(
        ("name", "documentType", "clusterName", "messages", "services"),
        name=STRING,
        documentType=STRING,
        clusterName=STRING,
        messages=STRINGS,
        services=list_of(_ANY_OBJECT),
    ),
    "Prepared": record(
        ("log", "tenant", "session-id", "activate", "message", "configChangeActions"),
        **{
            "log": list_of(ref("LogLine")),
            "tenant": STRING,
            "session-id": ref("SessionId"),
            "activate": STRING,
            "message": STRING,
            "configChangeActions": ref("Actions"),
        },
    ),
    "Activated": record(
        ("tenant", "application", "instance", "session-id", "message"),
        **{
            "deploy": _ANY_OBJECT,
            "tenant": STRING,
            "application": STRING,
            "instance": STRING,
            "session-id": ref("SessionId"),
            "generation": COUNT,
            "previousActiveGeneration": COUNT,
            "checksum": STRING,
            "message": STRING,
            "url": STRING,
        },
    ),
    "Deployed": record(
        ("log", "message", "session-id", "activated", "tenant", "url", "configChangeActions"),
        **{
            "log": list_of(ref("LogLine")),
            "message": STRING,
            "session-id": ref("SessionId"),
            "activated": BOOLEAN,
            "tenant": STRING,
            "url": STRING,
            "configChangeActions": ref("Actions"),
        },
    ),
    "Edited": record(("prepared",), prepared=STRING),
    "Application": record(
        ("generation", "applicationPackageFileReference", "versions"),
        generation=COUNT,
        applicationPackageFileReference=STRING,
        versions=list_of(record(("generation", "serviceVersion"), generation=COUNT, serviceVersion=STRING)),
        modelVersions=STRINGS,
    ),
    "ApplicationOfHost": record(
        ("tenant", "application", "environment", "region", "instance"),
        tenant=STRING,
        application=STRING,
        environment=STRING,
        region=STRING,
        instance=STRING,
    ),
    "Convergence": record(
        ("url", "currentGeneration", "wantedGeneration", "converged", "services"),
        url=STRING,
        services=list_of(
            record(
                ("host", "port", "type", "clusterName", "url", "currentGeneration"),
                host=STRING,
                port=COUNT,
                type=STRING,
                clusterName=STRING,
                url=STRING,
                currentGeneration=INTEGER,
            )
        ),
        **_GENERATIONS,
    ),
    "ServiceConvergence": record(
        ("url", "host", "wantedGeneration"), url=STRING, host=STRING, problem=STRING, **_GENERATIONS
    ),
    "Reindexing": record(
        ("enabled", "clusters"),
        enabled=BOOLEAN,
        clusters=map_of(
            record(
                ("pending", "ready"),
                pending=list_of({"type": ["string", "object"]}),
                ready=map_of(
                    record(
                        readyMillis=COUNT,
                        startedMillis=COUNT,
                        endedMillis=COUNT,
                        state=STRING,
                        message=STRING,
                        cause=STRING,
                        speed=NUMBER,
                        progress={**NUMBER, "minimum": 0, "maximum": 1},
                    )
                ),
            )
        ),
    ),
    "FileDistribution": record(
        ("hosts", "status"),
        hosts=list_of(
            record(
                ("hostname", "status", "fileReferences"),
                hostname=STRING,
                status=STRING,
                fileReferences=list_of(_ANY_OBJECT),
            )
        ),
        status=STRING,
    ),
    "Quota": record(("rate",), rate=NUMBER),
    "ContentEntry": record(("name", "type"), name=STRING, type=enum("file", "directory"), size=COUNT),
    "ContentStatus": record(("status", "md5", "name"), status=STRING, md5=STRING, name=STRING),
    "Content": {
        "description": "The entries of a folder, their addresses, or their states, as the request asks.",
        "oneOf": [
            {"type": "array", "maxItems": 0},
            {"type": "array", "minItems": 1, "items": ref("ContentEntry")},
            {"type": "array", "minItems": 1, "items": STRING},
            {"type": "array", "minItems": 1, "items": ref("ContentStatus")},
        ],
    },
    "Status": record(("configserverConfig", "modelVersions"), configserverConfig=_ANY_OBJECT, modelVersions=STRINGS),
    "Config": record(
        ("config",), config=record(("generation", "wantedGeneration"), generation=COUNT, wantedGeneration=COUNT)
    ),
}
