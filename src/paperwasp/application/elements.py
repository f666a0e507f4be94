"""The elements of services.xml, hosts.xml and deployment.xml: tables in the language of `application.grammar`."""

from __future__ import annotations

from typing import Final

from paperwasp.application.grammar import read_grammar

# The root of services.xml, and of it what is neither a container nor a content cluster.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/services/services.html


SERVICES: Final = """
service-node  noted hostalias!:name baseport:port jvm-options jvm-gc-options jvmargs preload index:count
dedicated-nodes  noted
    nodes!  noted count!:amount flavor required:boolean docker-image dedicated:boolean exclusive:boolean
        resources@resources?
consumer  noted id:id name:id
    metric-set  noted id!:id
    metric  noted id:id display-name:id name:id output-name:id
    cloudwatch?  noted region!:id namespace!:id
        access-key-name?  noted = text
        secret-key-name?  noted = text
        profile?  noted = text
        shared-credentials?  noted file! profile
        credentials?  noted access-key-name! secret-key-name!
admin  noted version!:2.0|3.0|4.0 -- everything runs in this one process
    adminserver@service-node?
    nodes?  noted count!:amount flavor docker-image
        resources@resources?
    logserver@service-node?
    configserver@service-node?
    configservers?  noted
        configserver@service-node+
    filedistribution?  noted
        uploadbitrate?  noted = rate
        downloadbitrate?  noted = rate
    slobroks?  noted
        slobrok@service-node
        nodes?  noted any
    logservers@dedicated-nodes?
    monitoring?  noted interval:integer systemname
    yamas?  noted interval:integer systemname
    metrics?  noted
        consumer@consumer+
    metric-consumers?  noted
        consumer@consumer+
    cluster-controllers?  noted standalone-zookeeper
        cluster-controller@service-node+
    logforwarding?  noted any
    telemetry?  noted -- `paperwasp serve --otlp-endpoint` says where traces and metrics go
        exporter  noted any
    logging?  noted
        class  noted name! levels!
        package  noted name! levels!
    config@config
routing  pending version!:1.0 -- every document goes to the clusters that have its type
    routingtable  pending protocol!:document verify:boolean
        hop  pending name! selector! ignore-result:boolean
            recipient  pending session!
        route  pending name! hops!
    services  pending protocol!:document
        service  pending name!
services  used version:1.0 minimum-required-vespa-version major-version ~application-type:hosted-infrastructure|default
    container@container
    content@content
    admin@admin?
    routing@routing?
    config@read-config
    legacy?  used
        v7-geo-positions?  used = boolean
        foo-bar?  used = text
    clients?  noted version:2.0 any
    service  refused any -- paperwasp starts no other programs
    cluster  refused any -- paperwasp starts no other programs
    genericcluster  refused any -- paperwasp starts no other programs
"""


# `container` and what is in it.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/services/container.html and its neighbours `http`, `search`,
# `docproc` and `processing`.


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


# Components: those of Vespa's built-in types, and any Java class.


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


# Chains of searchers, document processors, processors and filters, and what all of services.xml shares.


CHAINS: Final = """
config  noted name!:id namespace version any -- the configuration that it overrides does not exist here
read-config  used name!:id namespace version any
include  used dir!
bundle  used class:id bundle:id
java  used id:id idref:id ident:id
    +bundle
    config@read-config
ordered  used before after
    before  used = id
    after  used = id
chained  used provides
    +java
    +ordered
    provides  used = id
phase  used id:id idref:id ident:id
    +ordered
chain  used id:id idref:id ident:id inherits excludes
    inherits?  used
        chain  used id:id idref:id ident:id = text
        docprocchain  used id:id idref:id ident:id = text
        exclude  used id:id idref:id ident:id = text
    phase@phase
    config@config
searcher  used
    +chained
federationoptions  used optional:boolean default:boolean timeout:seconds requestTimeout:seconds
federation  used
    +chained
    source  used id:id idref:id ident:id
        federationoptions@federationoptions?
    target-selector?  used
        +java
        component@component
    source-set?  used inherits:default
search-chain  used searchers
    +chain
    searcher@searcher
    federation@federation
    federationoptions@federationoptions?
provider  used cachesize:rate type cluster cacheweight:from-0 path readtimeout:seconds \
        connectiontimeout:seconds connectionpooltimeout:seconds retries:integer
    +search-chain
    source@search-chain
    nodes?  used
        node+  used host! port!:port
field-map  used
    field+  used doctype in-document! in-processor!
documentprocessor  used
    +chained
    map@field-map?
document-processing-chain  used name:name documentprocessors
    +chain
    map@field-map?
    documentprocessor@documentprocessor
processor  used
    +chained
processing-chain  used
    +chain
    processor@processor
filter  used
    +chained
    component@component
    filter-config?  used any
filter-chain  used
    +chain
    filter@filter
    binding  used = text
"""


# `content` and what is in it.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/services/content.html


CONTENT: Final = """
documents  used selection garbage-collection:boolean garbage-collection-interval:count
    document+  used type!:name mode!:index|streaming|store-only selection global:boolean
        config@read-config
    document-processing?  used cluster:name chain:id
process  used ~cpu-socket-affinity ~mmap-core-limit:count ~core-on-oom:boolean ~no-vespamalloc \
        ~vespamalloc ~vespamalloc-debug ~vespamalloc-debug-stacktrace
content-node  used hostalias:name distribution-key!:distribution-key ~baseport:port ~capacity:from-0 \
        ~cpu-socket:count ~jvm-options ~jvm-gc-options ~preload
    +process
    config@config
allocation  used ~count:amount ~flavor ~required:boolean ~exclusive:boolean ~docker-image ~groups:amount ~group-size
content-nodes  used
    +process
    +allocation
    node@content-node
    resources@resources?
group  used distribution-key!:count name!
    distribution?  used partitions!:partitions
    node@content-node
    group@group
    nodes?  used
        +allocation
        resources@resources?
top-group  used distribution-key:count name
    +process
    distribution?  used partitions!:partitions
    node@content-node
    group@group
resource-limits  used
    disk?  used = ratio
    memory?  used = ratio
compression  noted
    type?  noted = none|lz4|zstd
    level?  noted = count
file-access  noted
    write?  noted = normal|directio
    read?  noted = normal|directio|mmap|mlock|populate
    search?  noted = normal|directio|mmap|mlock|populate
search-node  used
    requestthreads?  used
        search?  used = count
        persearch?  used = count
        summary?  noted = count -- hits are written by the thread that finds them
    lidspace?  noted -- its resources are managed without settings
        max-bloat-factor?  noted = ratio
    flushstrategy?  noted -- its resources are managed without settings
        native?  noted
            total?  noted
                maxmemorygain?  noted = count
                diskbloatfactor?  noted = from-0
            component?  noted
                maxmemorygain?  noted = count
                diskbloatfactor?  noted = from-0
                maxage?  noted = count
            transactionlog?  noted
                maxentries?  noted = count
                maxsize?  noted = count
            conservative?  noted
                memory-limit-factor?  noted = ratio
                disk-limit-factor?  noted = ratio
    resizing?  noted -- its resources are managed without settings
        initialdocumentcount?  noted = count
        amortize-count?  noted = count
    index?  noted -- its resources are managed without settings
        io@file-access?
        warmup?  noted
            time?  noted = from-0
            unpack?  noted = boolean
    attribute?  noted -- its resources are managed without settings
        io@file-access?
    summary?  noted -- its resources are managed without settings
        io@file-access?
        store?  noted
            cache?  noted
                maxsize?  noted = count
                maxsize-percent?  noted = half-percent
                initialentries?  noted = count
                maxentries?  noted = count
                compression@compression?
            logstore?  noted
                maxfilesize?  noted = count
                maxdiskbloatfactor?  noted = from-0
                minfilesizefactor?  noted = minimum-file-size
                chunk?  noted
                    maxsize?  noted = count
                    maxentries?  noted = count
                    compression@compression?
    initialize?  noted -- its resources are managed without settings
        threads?  noted = count
    feeding?  noted -- its resources are managed without settings
        concurrency?  noted = ratio
        niceness?  noted = ratio
    removed-db?  noted -- its resources are managed without settings
        prune?  noted
            age?  noted = from-0
            interval?  noted = from-60
content-tuning  used
    dispatch?  used
        max-hits-per-partition?  used = count
        dispatch-policy?  noted = \
                round-robin|adaptive|random|best-of-random-2|latency-amortized-over-requests|latency-amortized-over-time
        prioritize-availability?  noted = boolean
        min-active-docs-coverage?  noted = number
        min-group-coverage?  noted = number
        use-local-node?  noted = boolean
        top-k-probability?  noted = ratio -- there is one node, which gives all hits that are asked for
    distribution?  noted type!:strict|loose|legacy pseudo-row-column-mode:boolean -- there is one node
    bucket-splitting?  noted max-documents:count max-size:count minimum-bits:count -- there is one node
    merges?  noted max-per-node:count max-queue-size:count max-nodes-per-merge:merge-nodes -- there is one node
    visitors?  noted thread-count:count max-queue-size:count -- visits are read chunk by chunk as clients take them
        max-concurrent?  noted fixed:count variable:count
    cluster-controller?  noted -- there is one node
        init-progress-time?  noted = duration
        transition-time?  noted = duration
        max-premature-crashes?  noted = count
        stable-state-period?  noted = duration
        min-distributor-up-ratio?  noted = number
        min-storage-up-ratio?  noted = number
        groups-allowed-down-ratio?  noted = ratio
    maintenance?  noted start!:time-of-day stop!:time-of-day \
            high!:monday|tuesday|wednesday|thursday|friday|saturday|sunday -- there are no buckets to verify
    persistence-threads?  noted count:integer highest-priority-to-block lowest-priority-to-block-others \
            -- one thread writes
        thread  noted lowest-priority count:integer
    min-node-ratio-per-group?  noted = ratio -- there is one node
    resource-limits@resource-limits?
    max-document-size?  used = size
content  used version!:1.0 id:name ~distributor-base-port:port
    documents@documents!
    redundancy?  used ~reply-after:count = copies
    min-redundancy?  used = copies
    coverage-policy?  noted = group|node -- there is one node
    nodes@content-nodes?
    group@top-group?
    engine?  used
        dummy?  noted = text
        proton?  used
            flush-on-shutdown?  noted = boolean
            sync-transactionlog?  noted = boolean
            visibility-delay?  noted = from-0
            query-timeout?  used = from-0
            searchable-copies?  used = count
            resource-limits@resource-limits?
            tuning?  used
                dispatch?  used
                    max-hits-per-partition?  used = count
                searchnode@search-node?
    search?  used
        query-timeout?  used = from-0
        visibility-delay?  noted = from-0 -- documents are visible at once
        coverage?  noted -- there is one node, and no other to wait for
            minimum?  noted = ratio
            min-wait-after-coverage-factor?  noted = ratio
            max-wait-after-coverage-factor?  noted = ratio
    tuning@content-tuning?
    dispatch?  noted -- there is one node
        num-dispatch-groups?  noted = count
        group  noted
            node+  noted distribution-key!:count
    controllers?  noted any -- there is one node
    experimental?  noted any
    config@read-config
"""


# hosts.xml and deployment.xml.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/hosts.html and `deployment.html` beside it.


DEPLOYMENT: Final = """
hosts  used
    host+  used name!
        alias  used = name
account  used athenz-service cloud-account empty-host-ttl
tester  used
    nodes?  used any
test-step  used tester-flavor = text
    +account
    tester@tester?
delay  used hours:long minutes:long seconds:long
region  used active:boolean fraction:ratio = text
    +account
parallel  used
    steps@steps
    instance@instance
    region@region
    delay@delay
    test@test-step
steps  used
    parallel@parallel
    instance@instance
    region@region
    delay@delay
    test@test-step
endpoint  used id container-id region type enabled:boolean
    region@region
    instance  used weight!:long region = text
    allow  used with! arn project
    deny  used with
step  used
    delay@delay
    parallel@parallel
    upgrade?  used policy revision-target revision-change min-risk:long max-risk:long max-idle-hours:long rollout
    backup  used frequency! granularity:cluster|group
    resource-tags?  used
        tag+  used key! value!
    block-change  used revision:boolean version:boolean maintenance:boolean days hours from-date to-date time-zone
    notifications?  used when
        email  used address role when
    endpoints?  used
        endpoint@endpoint+
    bcp?  used deadline
        group  used deadline
            endpoint@endpoint
            region@region+
    test@test-step?
    staging@test-step?
    dev?  used tags
        +account
        endpoints?  used
            endpoint@endpoint+
    perf?  used
        +account
    prod  used tester-flavor ~global-service-id
        +account
        tester@tester?
        region@region
        delay@delay
        test@test-step
        parallel@parallel
        steps@steps
instance  used id! tags
    +account
    +step
deployment  used version!:1.0 major-version athenz-domain
    +account
    +step
    instance@instance
"""


RULES: Final = read_grammar(CHAINS, COMPONENTS, CONTAINER, CONTENT, SERVICES, DEPLOYMENT)
"""Name → rule; `services`, `hosts` and `deployment` are the roots of files."""
