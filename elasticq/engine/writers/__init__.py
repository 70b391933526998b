"""The effects of mutations on the state and the rows on disk, a module per kind of object (messages: ``apply``)."""
