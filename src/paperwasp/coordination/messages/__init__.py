"""The messages that containers and content clusters exchange, and their form as bytes.

    a value of the process ↔ a message ↔ an envelope ↔ bytes

Within a process a messenger hands over values as they are. Between processes they cross as messages: plain records
that name nothing of one process, no row of a node, no time of a clock, no object. What needs no more than that is a
message as it is (`documents`, `queries`); of the rest, `Conversion` says how a value becomes a message and a message a
value again, at either end. The format: docs/internals/formats/messages.md.
"""
