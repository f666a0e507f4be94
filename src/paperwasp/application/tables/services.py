"""The root of services.xml, and of it what is neither a container nor a content cluster.

Vespa: https://docs.vespa.ai/en/reference/applications/services/services.html
"""

from typing import Final

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
