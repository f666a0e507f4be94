"""Who may ask a container what.

gate          lets a request pass to its interface, or answers it
permissions   the permission that a request needs
keys          decides whether the sender has it
filters       asks the application's own classes
"""
