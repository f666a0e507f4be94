"""Application packages: from an archive or a folder to a checked model of the application.

    package               the files of an application, however they came
    build                 the files read and checked: `build_model`
    model                 the records that this makes
    changes               what leads from one model to the next

Nothing is imported here, so that each of them can be imported without the others.
"""
