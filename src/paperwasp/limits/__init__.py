"""Every limit on size, depth, queue and time. Units last in the name.

Those that concern every application are names of this package (`limits.QUERY_ITEMS`), whichever file they stand in;
those of one part of the service are names of its file (`limits.grouping.TEXT_BYTES`).
"""
# ruff: noqa: F403 — they are many, and no name is in two files (a test says so)

from paperwasp.limits import access as access
from paperwasp.limits import backup as backup
from paperwasp.limits import doctor as doctor
from paperwasp.limits import embedding as embedding
from paperwasp.limits import expressions as expressions
from paperwasp.limits import grouping as grouping
from paperwasp.limits import messages as messages
from paperwasp.limits import monitoring as monitoring
from paperwasp.limits.connections import *
from paperwasp.limits.content import *
from paperwasp.limits.feeding import *
from paperwasp.limits.languages import *
from paperwasp.limits.packages import *
from paperwasp.limits.queries import *
from paperwasp.limits.ranking import *
from paperwasp.limits.remote import *
from paperwasp.limits.requests import *
