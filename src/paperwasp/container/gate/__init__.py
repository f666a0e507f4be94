"""Who may ask a container what.

gate          the permission that a request needs, and whether whoever sends it has it, before it reaches its interface
filters       what the application's own classes say to a request
"""
