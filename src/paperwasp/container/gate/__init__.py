"""Who may ask a container what.

permissions   a request → the permission that it needs
rules         … and whether whoever sends it has it: by a client certificate or a key
filters       what the application's own classes say to a request
gate          all of it, before a request reaches its interface
"""
