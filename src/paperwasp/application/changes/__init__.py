"""From the active application to a new one: what the change needs, what must be allowed, and by which override.

    find           compares two models
    found          the result: actions and refusals, and both in words
    overrides      what `validation-overrides.xml` allows

Nothing is imported here, so that each of them can be imported without the others.
"""
