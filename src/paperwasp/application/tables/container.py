"""`container` and what is in it.

Vespa: https://docs.vespa.ai/en/reference/applications/services/container.html and its neighbours `http`, `search`,
`docproc` and `processing`.
"""

from typing import Final

CONTAINER: Final = """
threadpool  noted -- the number of threads does not depend on the application
    max-threads?  noted = count
    min-threads?  noted = count
    queue-size?  noted = count
    threads?  noted max:number = number
    queue?  noted = number
resources  noted vcpu memory disk disk-speed:fast|slow|any storage-type:local|remote|any \
        architecture:x86_64|arm64|any max-cost-factor:from-1 -- everything runs in this one process
    gpu?  noted type count!:positive memory!
search  used
    include@include
    binding  used = text
    searcher@searcher
    federation@federation
    chain@search-chain
    provider@provider
    renderer  used
        +java
        component@component
    significance?  used
        model+  used >model-id path >url
    threadpool@threadpool?
    config@read-config
document-api  used
    binding  used = text
    ignore-undefined-fields?  used = boolean
    max-document-size?  used = size
    abortondocumenterror?  noted = boolean
    retryenabled?  noted = boolean
    route?  noted = text
    maxpendingdocs?  noted = count
    maxpendingbytes?  noted = count
    retrydelay?  noted = from-0
    timeout?  noted = from-0
    tracelevel?  noted = count
    mbusport?  noted = port
    rest-api?  noted
    http-client-api?  noted
        threadpool@threadpool?
    threadpool@threadpool?
    config@config
document-processing  used ~compressdocuments:boolean ~numnodesperclient:positive \
        ~preferlocalnode:boolean ~maxmessagesinqueue:count ~maxqueuebytesize ~maxqueuewait:positive \
        ~maxconcurrentfactor:ratio ~documentexpansionfactor:from-0 ~containercorememory:count
    include@include
    documentprocessor@documentprocessor
    chain@document-processing-chain
    threadpool@threadpool?
    config@config
processing  pending
    include@include
    binding  used = text
    processor@processor
    chain@processing-chain
    renderer  used
        +java
        component@component
    config@config
components  used
    include@include
    component@component
http  used
    filtering?  used strict-mode:boolean
        filter@filter
        access-control?  used domain read:boolean write:boolean tls-handshake-client-auth:want|need
            vespa-domain?  used = text
            exclude?  used
                binding+  used = text
        request-chain@filter-chain
        response-chain@filter-chain
    server  used id:id idref:id ident:id port:port required:boolean default-request-chain default-response-chain
        ssl?  used
            private-key-file!  used = text
            certificate-file!  used = text
            ca-certificates-file?  used = text
            client-authentication?  used = disabled|want|need
            cipher-suites?  used = text
            protocols?  used = text
        ssl-provider?  refused -- there is no Java here
        config@config
container  used version!:1.0 id:name ~jetty:boolean
    search@search?
    document-api@document-api?
    document-processing@document-processing?
    processing@processing?
    model-evaluation?  used
        onnx?  used
            models?  used
                model  used name!
                    intraop-threads?  used = count
                    interop-threads?  used = count
                    execution-mode?  used = sequential|parallel
                    gpu-device?  used = count
                    optimize-model?  used = boolean
    component@component
    components@components
    handler  used
        +java
        binding  used = text
        clientBinding  used = text
        component@component
    server  used
        +java
        component@component
    http@http?
    nodes?  used ~jvm-options ~jvm-gc-options ~preload ~allocated-memory ~cpu-socket-affinity:boolean \
            of:name ~required:boolean ~type ~count:amount ~flavor ~exclusive:boolean ~docker-image
        node  used hostalias!:name ~baseport:port ~cpu-socket:count ~jvm-options ~jvm-gc-options ~preload
            config@config
        jvm?  noted options gc-options allocated-memory -- there is no Java here
        resources@resources?
        environment-variables?  noted any
    accesslog  used type:yapache|vespa|json|disabled ~fileNamePattern compressOnRotation:boolean \
            ~symlinkName compressionType:gzip|zstd ~queueSize:count ~bufferSize:count ~rotationInterval \
            ~rotationScheme:date|sequence
        request-content  noted
            samples-per-second!  noted = from-0
            path-prefix!  noted = text
            max-bytes!  noted = count
    clients?  used
        client  used id!:id permissions!
            certificate  used file!
            token  used id!
    client-authorize?  noted -- Vespa checks clients in its cloud only
    document  refused type! class! bundle! -- there is no Java here
    secret-store?  pending type! any
    secrets?  noted any -- a secret is found where the service runs, by the name that refers to it
    zookeeper?  noted session-timeout-seconds -- there is one process, and nothing to agree on
    load-balancer?  noted any -- there is none
    threadpool@threadpool?
    inference?  pending any
    include@include
    config@read-config
"""
