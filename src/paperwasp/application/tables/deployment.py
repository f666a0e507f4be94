"""hosts.xml and deployment.xml.

Vespa: https://docs.vespa.ai/en/reference/applications/hosts.html and `deployment.html` beside it.
"""

from typing import Final

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
