"""A Trace in the forms that others read: Chrome's JSON, Perfetto's protobuf, and the columns of the book's pages."""
