"""The command `models`: which models a package needs, and how they come into the model cache of this machine.

needed          the models that a package names
cache           the files of the cache, and their hashes
hugging_face    what Hugging Face's own cache has
download        files from their addresses
commands        list, fetch and add, as the command line has them
"""
