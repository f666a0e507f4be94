"""Commands for whoever writes an application package: they ask no service.

new_package     makes the files of a package (`init`), for rows of a sample whose columns `guessing` finds types for
check           checks a package as a compiler would
model_cache     lists the models that a package needs (`needed_models`), and fetches them; `hugging_face`: its cache
"""
