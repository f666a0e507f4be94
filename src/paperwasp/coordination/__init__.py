"""The joints between the parts of a service, in one process or several: operation log, config store and messenger.

operation_log      the log of a content cluster, which all changes of documents go through; `log_format` has its bytes
log_end            a file beside the log that notes how far it goes, so that a start notices if its end is lost
disk               writing small files so that a crash leaves the old one or the new one
config_store       where sessions, packages and the choice of the active application are kept
messenger          requests from containers to content clusters, within one process
messages/          what is asked and answered through the messenger, as values and as bytes
pipe_messenger     a messenger through another process: `pipes` and `pipe_relay`
worker_pool        the threads that queries run on behind a messenger

The content clusters of an application are in `server.roles.content_clusters`, and their documents in `content`.
"""
