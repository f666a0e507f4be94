"""Chains of searchers, document processors, processors and filters, and what all of services.xml shares."""

from typing import Final

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
