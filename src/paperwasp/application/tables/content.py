"""`content` and what is in it.

Vespa: https://docs.vespa.ai/en/reference/applications/services/content.html
"""

from typing import Final

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
