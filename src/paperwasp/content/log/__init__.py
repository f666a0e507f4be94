"""Operations on their way into the log, in the order of a put, and as the records of the log.

operation_queue   where operations wait for the writer, and actions between two batches
gathering         how many operations are one batch
producer          stamps, encodes and logs a batch
late_operations   takes operations that were made under the layout before
records           operations as the payload of records
moved_records     records that came from the log of another node
"""
