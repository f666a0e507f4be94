"""Who may ask a container what.

permissions   a request → the permission that it needs
rules         … and whether whoever sends it has it: by a client certificate or a key
gate          both, before a request reaches its interface
"""
